//! Words that must not come back: private English, with the plain word for each.

use std::fs;
use std::path::Path;

use super::assert_none;
use super::rules::Violation;

/// The words, in lower case, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again, or a new ..."),
    ("whoever", "name the subject: the client, the caller, the owner"),
    ("whomever", "name the person"),
    ("is told", "receives, or the response says"),
    ("are told", "receive, or the response says"),
    ("be told", "receive, or the response says"),
    ("brought back", "restored"),
    ("bring back", "restore"),
    ("that which", "what, or name the thing"),
    ("those who", "name them: users, callers, clients"),
    ("for ever", "permanently, or without a limit"),
    ("taken back", "rolled back, or revoked"),
    ("given back", "returned, or released"),
    ("hands out", "grants, or returns"),
    ("what is there", "name the thing"),
    ("who asks", "the caller"),
    ("in vain", "say what fails"),
    ("postman", "mail worker"),
    ("such a one", "name the thing"),
    ("keeps house", "runs maintenance"),
];

/// References to pages that are not in the repository.
const REFERENCES: &[&str] = &[
    "decisions §",
    "design §",
    "document §",
    "facts-org",
    "facts-dashboards",
    "facts-crosscutting",
];

/// The parts of a file's path that show prose.
const PROSE: &[&str] = &["rs", "md", "html", "txt"];

/// Adds the files with prose below `folder`.
fn collect(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|is| PROSE.iter().any(|prose| is == *prose)) {
            found.push(path.to_str().expect("UTF-8").to_owned());
        }
    }
}

/// Returns where `text` uses one of the words, also if it continues on the next line.
fn violations(path: &str, text: &str) -> Vec<Violation> {
    let lines: Vec<_> = text.lines().map(|line| plain(line).to_lowercase()).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).map_or("", String::as_str);
        let both = format!("{line} {next}");
        let mut report = |what: String| found.push(Violation::new(path, at + 1, what));
        for (word, instead) in WORDS {
            if starts_of(&both, word).any(|start| start < line.len()) {
                report(format!("\"{word}\": write {instead}"));
            }
        }
        for reference in REFERENCES.iter().filter(|reference| line.contains(**reference)) {
            report(format!("\"{reference}\": the page is not in the repository"));
        }
    }
    found
}

/// Returns the line without indentation and without the sign of a comment.
fn plain(line: &str) -> &str {
    line.trim().trim_start_matches('/').trim_start_matches(['!', '-', '*']).trim()
}

/// Returns where `word` stands in `text` as a word.
fn starts_of<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(start, _)| start).filter(move |start| {
        let (before, after) = (&text[..*start], &text[start + word.len()..]);
        !before.ends_with(is_letter) && !after.starts_with(is_letter)
    })
}

#[test]
fn forbidden_words_do_not_occur() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    collect(&root.join("docs"), &mut files);
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"] {
        files.push(root.join(page).to_str().expect("UTF-8").to_owned());
    }
    assert!(files.len() > 300, "only {} files were found", files.len());
    assert_none(files.iter().flat_map(|path| {
        let text = fs::read_to_string(path).expect("a text");
        let shown = path.strip_prefix(root.to_str().expect("UTF-8")).expect("below the root");
        violations(shown.trim_start_matches('/'), &text)
    }));
}

#[test]
fn forbidden_word_is_found_in_any_case_and_over_two_lines() {
    let lines = |text| violations("a.rs", text).iter().map(|found| found.line).collect::<Vec<_>>();
    assert_eq!(lines("/// Whoever asks is\n    /// told so, anew.\n"), [1, 1, 2]);
    assert_eq!(lines("// Renewal, whoeveritis, a_new, decisions of the owner\n"), [0; 0]);
    assert_eq!(lines("//! As decided (decisions §1).\n"), [1]);
}
