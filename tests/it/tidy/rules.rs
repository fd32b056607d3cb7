//! What the sources must hold to (design §3, §7). Each rule reads one file and answers where it is broken.

use std::fmt;

use super::source::Source;

/// Where a rule is broken, and how.
#[derive(Debug, PartialEq, Eq)]
pub struct Violation {
    path: String,
    pub line: usize,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src/{}:{}: {}", self.path, self.line, self.what)
    }
}

fn violation(source: &Source, at: usize, what: impl Into<String>) -> Violation {
    Violation { path: source.path.clone(), line: source.line(at), what: what.into() }
}

/// The crates that only some may name, and who may: a folder, a file, or `*/http.rs` for every noun's.
const CRATES: &[(&[&str], &[&str])] = &[
    (&["redb"], &["store"]),
    (
        &["axum", "hyper", "hyper_util", "tower", "tower_http"],
        &["http", "*/http.rs", "router.rs", "cli/serve.rs"],
    ),
    (&["clap"], &["cli", "config"]),
    (&["toml"], &["cli"]),
    (&["clap_complete", "clap_mangen"], &["cli/manual.rs"]),
    (&["sd_notify"], &["cli/manager.rs"]),
    (&["tokio_rustls"], &["http/tls.rs", "http/server/tests.rs"]),
    (&["lettre"], &["mail"]),
    (&["governor"], &["http/limits.rs"]),
    (&["hickory_resolver"], &["dns.rs"]),
    (&["metrics", "metrics_exporter_prometheus", "metrics_process"], &["meters"]),
    (&["sqlparser"], &["resources/batch_exports/hogql.rs"]),
    (&["ammonia", "pulldown_cmark"], &["resources/sharing/page/markdown.rs"]),
];

/// Crates are named only where they belong.
pub fn crates(source: &Source) -> Vec<Violation> {
    let belongs = |place: &&str| match *place {
        "*/http.rs" => source.is_wire(),
        place => source.path == place || source.room() == place,
    };
    let mut found = Vec::new();
    for (names, places) in CRATES {
        if places.iter().any(belongs) {
            continue;
        }
        for (at, word) in source.words().filter(|(_, word)| names.contains(word)) {
            let what = format!("{word} may be named only in {}", places.join(", "));
            found.push(violation(source, at, what));
        }
    }
    found
}

/// What a rule must not do by itself.
const IMPURE: [(&str, &str); 5] = [
    ("await", "a rule never waits"),
    ("Clock", "a rule is told the time"),
    ("SystemTime", "a rule is told the time"),
    ("Seed", "a rule is handed what it draws from"),
    ("random_bytes", "a rule is handed what it draws from"),
];

/// Rules never wait, never read the clock, never draw randomness by themselves.
pub fn purity(source: &Source) -> Vec<Violation> {
    if source.is_test() || source.is_wire() || source.noun().is_none() {
        return Vec::new();
    }
    let broken = |word: &str| IMPURE.iter().find(|(impure, _)| *impure == word);
    let words = source.words().filter_map(|(at, word)| Some((at, broken(word)?)));
    words.map(|(at, (word, why))| violation(source, at, format!("{word}: {why}"))).collect()
}

/// The order of the nouns: rules look only leftwards. `access` is `src/access/`.
const ORDER: &[&[&str]] = &[
    &["users", "organizations"],
    &["members"],
    &["projects"],
    &["api_keys"],
    &["access"],
    &["collaborators", "sharing", "access_controls"],
    &["dashboards"],
    &["domains", "invites", "batch_exports"],
    &["signup"],
    &["activity"],
    &["sweeps"],
];

fn rank(noun: &str) -> Option<usize> {
    ORDER.iter().position(|nouns| nouns.contains(&noun))
}

/// What each room of `src/` may import besides itself, from the ground up. A noun's `http.rs` may name
/// more than its rules.
const ROOMS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("patch", &[]),
    ("background", &["error"]),
    ("fair", &[]),
    ("time", &["error"]),
    ("json", &["error"]),
    ("secret", &["error", "time"]),
    ("input", &["error", "json", "patch", "time"]),
    ("store", &["background", "error", "fair", "secret", "time"]),
    ("ids", &["store"]),
    ("etag", &["error", "store"]),
    ("idempotency", &["error", "ids", "store", "time"]),
    ("meters", &[]),
    ("dns", &["config", "error", "fair"]),
    ("mail", &["config", "error", "ids", "meters", "secret", "store", "time"]),
    ("config", &["meters", "store", "time"]),
    (
        "access",
        &[
            "background",
            "error",
            "etag",
            "fair",
            "idempotency",
            "ids",
            "meters",
            "resources",
            "secret",
            "store",
            "time",
        ],
    ),
    (
        "resources",
        &[
            "access",
            "error",
            "etag",
            "fair",
            "idempotency",
            "ids",
            "input",
            "json",
            "mail",
            "patch",
            "secret",
            "store",
            "time",
        ],
    ),
    (
        "state",
        &[
            "access",
            "background",
            "config",
            "dns",
            "error",
            "etag",
            "fair",
            "http",
            "idempotency",
            "ids",
            "mail",
            "meters",
            "resources",
            "secret",
            "store",
            "time",
        ],
    ),
    (
        "http",
        &[
            "access",
            "background",
            "config",
            "error",
            "etag",
            "fair",
            "idempotency",
            "ids",
            "input",
            "json",
            "meters",
            "state",
            "store",
            "time",
        ],
    ),
    (
        "*/http.rs",
        &[
            "access",
            "error",
            "etag",
            "fair",
            "http",
            "ids",
            "input",
            "json",
            "patch",
            "resources",
            "secret",
            "state",
            "store",
            "time",
        ],
    ),
    ("router", &["access", "config", "http", "resources", "state"]),
    (
        "operator",
        &[
            "access",
            "error",
            "fair",
            "ids",
            "input",
            "json",
            "mail",
            "resources",
            "secret",
            "state",
            "store",
            "time",
        ],
    ),
    (
        "bootstrap",
        &[
            "access",
            "config",
            "error",
            "ids",
            "input",
            "mail",
            "resources",
            "secret",
            "state",
            "store",
            "time",
        ],
    ),
    (
        "cli",
        &[
            "bootstrap",
            "config",
            "error",
            "http",
            "ids",
            "meters",
            "operator",
            "resources",
            "router",
            "state",
            "store",
            "time",
        ],
    ),
    ("main", &["cli"]),
    ("lib", &[]),
];

/// Each room imports only what lies under it, and each noun only what stands left of it.
pub fn imports(source: &Source) -> Vec<Violation> {
    if source.is_test() {
        return Vec::new();
    }
    let room = source.room().trim_end_matches(".rs");
    let row = if source.is_wire() { "*/http.rs" } else { room };
    let Some((_, may)) = ROOMS.iter().find(|(name, _)| *name == row) else {
        return vec![violation(source, 0, format!("{room} is not on the map in tests/it/tidy"))];
    };
    let mut found = Vec::new();
    for (at, path) in source.crate_paths() {
        let parts: Vec<_> = path.split("::").collect();
        if parts[0] != room && !may.contains(&parts[0]) {
            found.push(violation(source, at, format!("{row} may not import {}", parts[0])));
        }
        found.extend(between_nouns(source, &parts).map(|what| violation(source, at, what)));
    }
    if source.noun().is_some() {
        for at in source.places("super::super") {
            found.push(violation(source, at, "a noun names another by crate::resources"));
        }
    }
    found.dedup();
    found
}

/// What is wrong with naming `parts` of another noun from this file, if anything is.
fn between_nouns(source: &Source, parts: &[&str]) -> Option<String> {
    let own = source.noun();
    let is_access = source.room() == "access";
    let (named, inside) = match parts {
        ["access", ..] => ("access", None),
        ["resources", named, inside @ ..] => (*named, inside.first().copied()),
        ["resources"] if own.is_some() || is_access => return Some("name the noun".to_owned()),
        _ => return None,
    };
    if inside == Some("http") && source.room() != "router.rs" {
        return Some(format!("{named}::http is the router's alone"));
    }
    let (noun, file) = own.or(is_access.then_some(("access", "")))?;
    // The wire, and how a noun is shown there, may read any noun's rules.
    if noun == named || file == "http.rs" || file == "body.rs" {
        return None;
    }
    if inside == Some("body") {
        return Some(format!("how {named} is shown is the wire's business"));
    }
    match (rank(named), rank(noun)) {
        (Some(left), Some(right)) if left < right => None,
        _ => Some(format!("{named} does not stand left of {noun}")),
    }
}

/// Every noun stands in the order.
pub fn nouns(list: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for at in list.places("pub mod ") {
        let noun = list.code[at + "pub mod ".len()..].split(';').next().expect("a name");
        if rank(noun).is_none() {
            found.push(violation(list, at, format!("{noun} has no place in the order of nouns")));
        }
    }
    found
}

/// How a noun tells its routes.
const ROUTES: &str = "pub fn routes(routes: &mut Routes) {";

/// Every noun's `http.rs` has the same items in the same order: imports, the paths, `routes`, then one
/// handler a route and what they share. Nothing but `routes` is for others.
pub fn wire(source: &Source) -> Vec<Violation> {
    if !source.is_wire() {
        return Vec::new();
    }
    let Some(&routes) = source.places(ROUTES).first() else {
        return vec![violation(source, 0, format!("there is no `{ROUTES}`"))];
    };
    let end = source.code[routes..].find("\n}").map_or(source.code.len(), |end| routes + end);
    let named: Vec<_> = source.words().filter(|(at, _)| (routes..end).contains(at)).collect();
    let is_named = |name: &str| named.iter().any(|(_, word)| *word == name);
    let begins = |line: &str, items: &[&str]| items.iter().any(|item| line.starts_with(item));
    let mut found = Vec::new();
    let mut at = 0;
    for line in source.code.split_inclusive('\n') {
        let handler = line.strip_prefix("async fn ").and_then(|rest| rest.split(['(', '<']).next());
        let wrong = if at > routes && begins(line, &["use ", "const "]) {
            Some("imports and paths come before routes".to_owned())
        } else if at < routes && begins(line, &["fn ", "async fn ", "struct ", "impl "]) {
            Some("routes comes before what it names".to_owned())
        } else if at != routes && begins(line, &["pub"]) {
            Some("nothing but routes is for others".to_owned())
        } else {
            handler.filter(|name| !is_named(name)).map(|name| format!("no route names {name}"))
        };
        found.extend(wrong.map(|what| violation(source, at, what)));
        at += line.len();
    }
    for (at, _) in source.with_texts.match_indices("\"/").filter(|(at, _)| *at > routes) {
        found.push(violation(source, at, "a path is a constant above routes"));
    }
    found
}

/// How many lines a file may have.
const LINES: usize = 400;

/// No file is unfinished or too long.
pub fn size(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    if source.lines > LINES {
        let what = format!("{} lines are more than {LINES}", source.lines);
        found.push(violation(source, source.code.len(), what));
    }
    for unfinished in ["todo!", "unimplemented!"] {
        for at in source.places(unfinished) {
            found.push(violation(source, at, unfinished));
        }
    }
    for (line, _) in source.text.lines().enumerate().filter(|(_, text)| text.contains("FIXME")) {
        let path = source.path.clone();
        found.push(Violation { path, line: line + 1, what: "FIXME".to_owned() });
    }
    found
}
