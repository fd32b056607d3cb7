//! The rules for the sources. Each rule reads one file and returns its violations.

use std::fmt;

use super::source::Source;

/// A violation of a rule, and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Violation {
    path: String,
    pub line: usize,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

impl Violation {
    /// A rule is broken in this line of a file of the repository.
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

fn violation(source: &Source, at: usize, what: impl Into<String>) -> Violation {
    Violation::new(&format!("src/{}", source.path), source.line(at), what)
}

/// The crates that only some modules may use: a folder, a file, or `*/http.rs` for the `http.rs` of every
/// resource module.
const CRATES: &[(&[&str], &[&str])] = &[
    (&["redb"], &["store"]),
    (
        &["axum", "hyper", "hyper_util", "tower", "tower_http"],
        &["http", "*/http.rs", "router.rs", "cli/serve.rs"],
    ),
    (&["clap"], &["cli", "config"]),
    (&["toml"], &["cli"]),
    (&["clap_complete", "clap_mangen"], &["cli/man_pages.rs"]),
    (&["sd_notify"], &["cli/systemd.rs"]),
    (&["tokio_rustls"], &["http/tls.rs", "http/server/tests.rs"]),
    (&["lettre"], &["mail"]),
    (&["governor"], &["http/rate_limit.rs"]),
    (&["hickory_resolver"], &["dns.rs"]),
    (&["prometheus"], &["metrics"]),
    (&["ammonia", "pulldown_cmark"], &["resources/sharing/page/markdown.rs"]),
];

/// Restricts crates to the modules in [`CRATES`].
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

/// Names that rules must not use, and the reasons.
const IMPURE: [(&str, &str); 5] = [
    ("await", "a rule must not wait"),
    ("Clock", "a rule receives the time as an argument"),
    ("SystemTime", "a rule receives the time as an argument"),
    ("Seed", "a rule receives its random source as an argument"),
    ("random_bytes", "a rule receives its random source as an argument"),
];

/// Rules of resource modules never wait, never read the clock, and never create random numbers by themselves.
pub fn purity(source: &Source) -> Vec<Violation> {
    if source.is_test() || source.is_wire() || source.noun().is_none() {
        return Vec::new();
    }
    let broken = |word: &str| IMPURE.iter().find(|(impure, _)| *impure == word);
    let words = source.words().filter_map(|(at, word)| Some((at, broken(word)?)));
    words.map(|(at, (word, why))| violation(source, at, format!("{word}: {why}"))).collect()
}

/// The order of the resource modules. A module may use only modules before it. `auth` is `src/auth/`.
const ORDER: &[&[&str]] = &[
    &["users", "organizations"],
    &["members"],
    &["projects"],
    &["api_keys"],
    &["auth"],
    &["collaborators", "sharing", "access_controls"],
    &["dashboards"],
    &["domains", "invites", "batch_exports"],
    &["signup"],
    &["activity"],
    &["cascade_delete"],
];

fn rank(noun: &str) -> Option<usize> {
    ORDER.iter().position(|nouns| nouns.contains(&noun))
}

/// What each folder or file of `src/` may import besides itself, from the bottom up. The `http.rs` of a
/// resource module may import more than its rules.
const ROOMS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("patch", &[]),
    ("low_priority", &["error"]),
    ("fair_queue", &[]),
    ("time", &["error"]),
    ("json", &["error"]),
    ("secret", &["error", "time"]),
    ("input", &["error", "json", "patch", "time"]),
    ("store", &["low_priority", "error", "fair_queue", "secret", "time"]),
    ("ids", &["store"]),
    ("etag", &["error", "store"]),
    ("idempotency", &["error", "ids", "store", "time"]),
    ("metrics", &[]),
    ("dns", &["config", "error", "fair_queue"]),
    ("mail", &["config", "error", "ids", "metrics", "secret", "store", "time"]),
    ("config", &["metrics", "store", "time"]),
    (
        "auth",
        &[
            "low_priority",
            "error",
            "etag",
            "fair_queue",
            "idempotency",
            "ids",
            "metrics",
            "resources",
            "secret",
            "store",
            "time",
        ],
    ),
    (
        "resources",
        &[
            "auth",
            "error",
            "etag",
            "fair_queue",
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
            "auth",
            "low_priority",
            "config",
            "dns",
            "error",
            "etag",
            "fair_queue",
            "http",
            "idempotency",
            "ids",
            "mail",
            "metrics",
            "resources",
            "secret",
            "store",
            "time",
        ],
    ),
    (
        "http",
        &[
            "auth",
            "low_priority",
            "config",
            "error",
            "etag",
            "fair_queue",
            "idempotency",
            "ids",
            "input",
            "json",
            "metrics",
            "state",
            "store",
            "time",
        ],
    ),
    (
        "*/http.rs",
        &[
            "auth",
            "error",
            "etag",
            "fair_queue",
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
    ("router", &["auth", "config", "http", "resources", "state"]),
    (
        "operator",
        &[
            "auth",
            "error",
            "fair_queue",
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
            "auth",
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
            "metrics",
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

/// Each folder imports only what [`ROOMS`] allows, and each resource module only modules before it.
pub fn imports(source: &Source) -> Vec<Violation> {
    if source.is_test() {
        return Vec::new();
    }
    let room = source.room().trim_end_matches(".rs");
    let row = if source.is_wire() { "*/http.rs" } else { room };
    let Some((_, may)) = ROOMS.iter().find(|(name, _)| *name == row) else {
        return vec![violation(
            source,
            0,
            format!("{room} is missing from the list in tests/it/tidy"),
        )];
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
            found.push(violation(source, at, "use crate::resources for another resource module"));
        }
    }
    found.dedup();
    found
}

/// Returns what is wrong with using `parts` of another resource module in this file, if anything is.
fn between_nouns(source: &Source, parts: &[&str]) -> Option<String> {
    let own = source.noun();
    let is_auth = source.room() == "auth";
    let (named, inside) = match parts {
        ["auth", ..] => ("auth", None),
        ["resources", named, inside @ ..] => (*named, inside.first().copied()),
        ["resources"] if own.is_some() || is_auth => return Some("name the module".to_owned()),
        _ => return None,
    };
    if inside == Some("http") && source.room() != "router.rs" {
        return Some(format!("only the router may use {named}::http"));
    }
    let (noun, file) = own.or(is_auth.then_some(("auth", "")))?;
    // `http.rs` and `body.rs` may read the rules of any resource module.
    if noun == named || file == "http.rs" || file == "body.rs" {
        return None;
    }
    if inside == Some("body") {
        return Some(format!("only http.rs and body.rs may use {named}::body"));
    }
    match (rank(named), rank(noun)) {
        (Some(left), Some(right)) if left < right => None,
        _ => Some(format!("{named} does not come before {noun} in the order")),
    }
}

/// Every resource module is in the order.
pub fn nouns(list: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for at in list.places("pub mod ") {
        let noun = list.code[at + "pub mod ".len()..].split(';').next().expect("a name");
        if rank(noun).is_none() {
            found.push(violation(
                list,
                at,
                format!("{noun} is missing from the order of resource modules"),
            ));
        }
    }
    found
}

/// The function that registers a resource module's routes.
const ROUTES: &str = "pub fn routes(routes: &mut Routes) {";

/// The `http.rs` of every resource module has the same items in the same order: imports, the paths, `routes`,
/// then a handler for each route and their shared code. Only `routes` is public.
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
            Some("imports and paths must come before routes".to_owned())
        } else if at < routes && begins(line, &["fn ", "async fn ", "struct ", "impl "]) {
            Some("routes must come before the handlers".to_owned())
        } else if at != routes && begins(line, &["pub"]) {
            Some("only routes may be public".to_owned())
        } else {
            handler.filter(|name| !is_named(name)).map(|name| format!("no route uses {name}"))
        };
        found.extend(wrong.map(|what| violation(source, at, what)));
        at += line.len();
    }
    for (at, _) in source.with_texts.match_indices("\"/").filter(|(at, _)| *at > routes) {
        found.push(violation(source, at, "a path must be a constant above routes"));
    }
    found
}

/// The maximum number of lines in a file.
const LINES: usize = 400;

/// Files are complete and not too long.
pub fn size(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    if source.lines > LINES {
        let what = format!("{} lines, at most {LINES}", source.lines);
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
