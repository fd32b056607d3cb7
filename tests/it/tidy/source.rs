//! A source file as the rules see it: code without comments, string literals and tests, and the paths in it.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// A source file.
pub struct Source {
    /// The path from `src/`.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// The number of lines.
    pub lines: usize,
    /// The code with comments replaced by spaces, string literals included.
    pub with_texts: String,
    /// The code with comments and string literals replaced by spaces, without the tests.
    pub code: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let code = blank(text, true);
        let tests = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            lines: text.lines().count(),
            with_texts: blank(text, false)[..tests].to_owned(),
            code: code[..tests].to_owned(),
        }
    }

    /// Whether the file contains only tests.
    pub fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs" || part == "testing.rs")
    }

    /// Returns the first part of the path: a folder such as `store`, or a file such as `router.rs`.
    pub fn top_part(&self) -> &str {
        self.path.split('/').next().expect("a first part")
    }

    /// Returns the resource module that the file belongs to, and the file's path inside it.
    pub fn resource(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("resources/")?.split_once('/')
    }

    /// Whether the file belongs to the handlers of a resource module.
    pub fn is_wire(&self) -> bool {
        self.resource().is_some_and(|(_, file)| file == "http.rs" || file.starts_with("http/"))
    }

    /// Returns the path of the module, without `crate`.
    pub fn module(&self) -> Vec<String> {
        let path = self.path.strip_suffix(".rs").expect("a source");
        path.strip_suffix("/mod").unwrap_or(path).split('/').map(str::to_owned).collect()
    }

    /// Returns the line of the byte at `at`, starting at 1.
    pub fn line(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    /// Returns every identifier with its position.
    pub fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = from + self.code[from..].find(is_word)?;
            let length = self.code[start..].find(|c| !is_word(c));
            from = length.map_or(self.code.len(), |length| start + length);
            Some((start, &self.code[start..from]))
        })
    }

    /// Returns every position of `text` in the code.
    pub fn places(&self, text: &str) -> Vec<usize> {
        self.code.match_indices(text).map(|(at, _)| at).collect()
    }

    /// Returns every path that begins with `crate`, `super`, `self` or a module that the file declares, from the crate's
    /// root and with groups expanded: `crate::a::{b, c::D}` gives `a::b` and `a::c::D`.
    pub fn module_paths(&self) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        let declared = self.places("mod ").into_iter().filter_map(|at| {
            let name = self.code[at + "mod ".len()..].split_once(';')?.0;
            Some(format!("{name}::"))
        });
        let starts = ["crate::", "super::", "self::"].map(str::to_owned).into_iter();
        for start in starts.chain(declared) {
            for at in self.places(&start) {
                let within = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
                if self.code[..at].ends_with(within) {
                    continue;
                }
                let paths = spelled_out(&self.code[at..]);
                found.extend(paths.iter().map(|path| (at, self.absolute(path))));
            }
        }
        found.sort();
        found
    }

    /// Returns a path from the crate's root, without `crate`.
    fn absolute(&self, path: &str) -> Vec<String> {
        let mut whole = self.module();
        for part in path.split("::") {
            match part {
                "crate" => whole.clear(),
                "super" => drop(whole.pop()),
                "self" => {}
                name => whole.push(name.to_owned()),
            }
        }
        whole
    }
}

/// Returns the paths of the use tree, or the single path, at the start of `text`.
fn spelled_out(text: &str) -> Vec<String> {
    if let Some(group) = text.strip_prefix('{') {
        return items(group).into_iter().flat_map(spelled_out).collect();
    }
    let is_name = |c: char| c.is_alphanumeric() || "_*$".contains(c);
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match rest.strip_prefix("::") {
        None => vec![name.to_owned()],
        Some(rest) => spelled_out(rest).iter().map(|path| format!("{name}::{path}")).collect(),
    }
}

/// Returns the items of a group, up to its closing brace.
fn items(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.push(group[start..at].trim());
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found.retain(|item| !item.is_empty());
    found
}

/// Replaces comments, and string literals if `texts` is set, with as many spaces.
fn blank(text: &str, texts: bool) -> String {
    // A comment, or a string or character literal. A lifetime has no closing quote.
    static BLANKED: LazyLock<Regex> = LazyLock::new(|| {
        let raw = r###"\bb?r"[^"]*"|\bb?r#"(?s:.*?)"#|\bb?r##"(?s:.*?)"##"###;
        let quoted = r#""(?:[^"\\]|\\(?s:.))*"|'(?:[^'\\]|\\.[^']*)'"#;
        Regex::new(&format!(r"//[^\n]*|/\*(?s:.*?)\*/|{raw}|{quoted}")).expect("a pattern")
    });
    let blanked = BLANKED.replace_all(text, |found: &Captures| {
        let piece = &found[0];
        if !texts && !piece.starts_with("//") && !piece.starts_with("/*") {
            return piece.to_owned();
        }
        piece.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
    });
    blanked.into_owned()
}

#[test]
fn comments_strings_and_tests_are_not_counted_as_code() {
    let text = "use a; // redb\n/* redb\n*/ let b = \"redb \\\" redb\"; let c = r#\"redb \" \"#;\n\
                let d = ('\"', '\\'', b'r', &'static str); let e = br\"redb\";\n\
                #[cfg(test)]\nmod tests {\n    use redb;\n}\n";
    let source = Source::new("x.rs", text);
    let words: Vec<_> = source.words().map(|(_, word)| word).collect();
    let expected =
        ["use", "a", "let", "b", "let", "c", "let", "d", "b", "static", "str", "let", "e"];
    assert_eq!(words, expected);
    let (e, _) = source.words().filter(|(_, word)| *word == "e").last().expect("e");
    assert_eq!(source.line(e), 4);
    assert_eq!(source.lines, 8);
    assert!(source.with_texts.contains("\"redb \\\" redb\"") && !source.with_texts.contains("//"));
}

#[test]
fn paths_are_spelled_out_from_the_root() {
    let text = "use crate::{a, b::{self, C}};\nuse super::d::{\n    e::F,\n    g::*,\n};\n\
                let h = super::super::i::j(k);\nuse mycrate::l;\nuse self::m;";
    let paths = Source::new("x/y/z.rs", text).module_paths();
    let paths: Vec<_> = paths.iter().map(|(_, path)| path.join("::")).collect();
    assert_eq!(
        paths,
        ["a", "b", "b::C", "x::y::d::e::F", "x::y::d::g::*", "x::i::j", "x::y::z::m"]
    );
    let declaring =
        Source::new("x/y/mod.rs", "mod own;\nuse super::z;\nfn f(a: own::A, b: an::own::B) {}");
    let paths: Vec<_> = declaring.module_paths().iter().map(|(_, path)| path.join("::")).collect();
    assert_eq!(paths, ["x::z", "x::y::own::A"]);
}
