//! Which operations of the API the pages reach. The others are listed in `docs/spec/console.md`, each with its reason.

use regex::Regex;

use crate::support::prelude::*;

/// The links of the frame name operations that pages send.
const NAVIGATION: &str = "layout/navigation.rs";

/// Returns the sources of the console, each with its path below `src/console/`.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console");
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                found.push((path.strip_prefix(&root).expect("within").to_owned(), text));
            }
        }
    }
    found
}

/// Returns the paths of the API in a source, without their queries.
fn paths(text: &str) -> BTreeSet<String> {
    let literal = Regex::new(r#""(/api/[^"?]*)[^"]*""#).expect("a pattern");
    literal.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// Returns the paths of the lists of the collections that a source declares.
fn lists(text: &str) -> Vec<String> {
    let declared =
        Regex::new(r#"&Collection \{\s*tenants: "(\w+)",\s*name: "(\w+)","#).expect("a pattern");
    let path = |found: regex::Captures<'_>| format!("/api/{}/{{}}/{}/", &found[1], &found[2]);
    declared.captures_iter(text).map(path).collect()
}

/// Returns the paths that the console reads. `api("...")` ends the path of an object.
fn read_paths(sources: &[(PathBuf, String)]) -> BTreeSet<String> {
    let rest = Regex::new(r#"\bapi\(\s*(?:&format!\(\s*)?"([^"?]*)"#).expect("a pattern");
    let mut found = BTreeSet::new();
    let mut ends = BTreeSet::new();
    for (_, text) in sources {
        found.extend(paths(text));
        ends.extend(rest.captures_iter(text).map(|rest| rest[1].to_owned()));
    }
    for list in sources.iter().flat_map(|(_, text)| lists(text)) {
        found.extend(ends.iter().map(|end| format!("{list}{{}}/{end}")));
        found.insert(list);
    }
    found
}

/// Whether a path in a source is one of an operation: the values of its parameters are written at run time.
fn is_path_of(path: &str, operation: &str) -> bool {
    let (sent, declared): (Vec<_>, Vec<_>) =
        (path.split('/').collect(), operation.split('/').collect());
    let is_parameter = |segment: &str| segment.starts_with('{');
    sent.len() == declared.len()
        && sent.iter().zip(&declared).all(|(sent, declared)| {
            sent == declared
                || is_parameter(declared) && (is_parameter(sent) || sent.starts_with('@'))
        })
}

/// Returns the operations that no page reaches.
fn unreached(specs: &[RouteSpec]) -> BTreeSet<&str> {
    let sources = sources();
    let read = read_paths(&sources);
    let is_named = |id: &str| {
        let quoted = format!("\"{id}\"");
        let mut pages = sources.iter().filter(|(path, _)| path != Path::new(NAVIGATION));
        pages.any(|(_, text)| text.contains(&quoted))
    };
    // What a page updates it has read at the same path.
    let is_updated = |path: &str| {
        let mut updates = specs.iter().filter(|spec| spec.method == Method::PATCH);
        updates.any(|update| update.path == path && is_named(update.operation))
    };
    let is_read = |spec: &RouteSpec| {
        spec.method == Method::GET
            && (read.iter().any(|path| is_path_of(path, spec.path)) || is_updated(spec.path))
    };
    let rest = specs.iter().filter(|spec| !is_named(spec.operation) && !is_read(spec));
    rest.map(|spec| spec.operation).collect()
}

/// Returns the operations that the specification lists, each with its reason.
fn listed() -> BTreeMap<String, String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/spec/console.md");
    let page = fs::read_to_string(page).expect("a page");
    let (_, section) =
        page.split_once("\n## Operations that no page reaches\n").expect("a section");
    let section = section.split("\n## ").next().expect("the section");
    let row = Regex::new(r"(?m)^\| `([a-z0-9_]+)` \| (.+) \|$").expect("a pattern");
    row.captures_iter(section).map(|row| (row[1].to_owned(), row[2].to_owned())).collect()
}

#[test]
fn every_operation_is_reached_by_a_page_or_listed_with_the_reason() {
    let table = routes();
    let unreached = unreached(table.specs());
    let listed = listed();
    let listed_ids: BTreeSet<&str> = listed.keys().map(String::as_str).collect();
    let missing: Vec<_> = unreached.difference(&listed_ids).collect();
    assert_eq!(missing, Vec::<&&str>::new(), "no page reaches these, and no reason is listed");
    let needless: Vec<_> = listed_ids.difference(&unreached).collect();
    assert_eq!(needless, Vec::<&&str>::new(), "a page reaches these, or they do not exist");
    for (id, reason) in &listed {
        assert!(reason.split_whitespace().count() > 2 && reason.ends_with('.'), "{id}: {reason}");
    }
}
