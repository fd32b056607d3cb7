//! The rules for the sources. Each rule reads one file and returns its violations.

use std::fmt;

use crate::support::prelude::*;

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

/// A rule for the files: it returns the violations in one file.
pub type Rule = fn(&Source) -> Vec<Violation>;

fn violation(source: &Source, at: usize, what: impl Into<String>) -> Violation {
    Violation::new(&format!("src/{}", source.path), source.line(at), what)
}

/// The crates and modules that only some modules may use: a folder, a file, or `*/http` for the handlers of every
/// resource module. A folder inside another ends with a slash.
const CRATES: &[(&[&str], &[&str])] = &[
    (&["redb"], &["store"]),
    (
        &["axum", "hyper", "hyper_util", "tower", "tower_http"],
        &["http", "*/http", "console", "router.rs", "cli/serve.rs", "test_server/http/"],
    ),
    (&["clap"], &["cli", "config", "operator/options.rs"]),
    (&["toml"], &["cli"]),
    // No other command leads to it.
    (&["test_server"], &["cli/test.rs", "lib.rs", "test_server"]),
    (&["clap_complete", "clap_mangen"], &["cli/man_pages.rs"]),
    (&["sd_notify"], &["cli/systemd.rs"]),
    (&["tokio_rustls"], &["http/tls.rs", "http/server/tests.rs", "mail", "net/trust_anchors.rs"]),
    (&["rustls_native_certs"], &["net/trust_anchors.rs"]),
    (&["tokio_postgres", "tokio_postgres_rustls"], &["store/origin/postgres/"]),
    (&["lettre"], &["mail"]),
    (&["governor"], &["app/rate_limit.rs"]),
    (&["hickory_resolver"], &["net/dns.rs"]),
    (&["prometheus"], &["metrics"]),
    (&["cookie", "similar"], &["console"]),
    (&["ammonia", "pulldown_cmark"], &["resources/sharing/page/markdown.rs"]),
];

/// Restricts crates to the modules in [`CRATES`].
pub fn crates(source: &Source) -> Vec<Violation> {
    let belongs = |place: &&str| match *place {
        "*/http" => source.is_wire(),
        place if place.ends_with('/') => source.path.starts_with(place),
        place => source.path == place || source.top_part() == place,
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
    if source.is_test() || source.is_wire() || source.resource().is_none() {
        return Vec::new();
    }
    let broken = |word: &str| IMPURE.iter().find(|(impure, _)| *impure == word);
    let words = source.words().filter_map(|(at, word)| Some((at, broken(word)?)));
    words.map(|(at, (word, why))| violation(source, at, format!("{word}: {why}"))).collect()
}

/// The modules that no rule of a resource module uses: they call the rules.
const CALLERS: [&str; 5] = ["app", "cli", "http", "operator", "router"];

/// Rules of resource modules use nothing that calls rules.
pub fn independence(source: &Source) -> Vec<Violation> {
    if source.is_test() || source.is_wire() || source.resource().is_none() {
        return Vec::new();
    }
    let paths = source.module_paths().into_iter();
    let broken = paths.filter(|(_, path)| CALLERS.contains(&path[0].as_str()));
    broken
        .map(|(at, path)| violation(source, at, format!("a rule may not use {}", path[0])))
        .collect()
}

/// Files of the store name an item where it is defined: a re-export of `store/mod.rs` would hide that two folders use each
/// other.
pub fn definitions(source: &Source) -> Vec<Violation> {
    if source.is_test() || source.top_part() != "store" || source.path == "store/mod.rs" {
        return Vec::new();
    }
    let is_reexport = |at: usize, path: &[String]| {
        let item = path.get(1).filter(|_| path[0] == "store");
        item.is_some_and(|item| item.starts_with(char::is_uppercase))
            // A macro of the store is used in the rest of the crate.
            && !source.code[..at].ends_with('$')
    };
    let broken = source.module_paths().into_iter().filter(|(at, path)| is_reexport(*at, path));
    broken
        .map(|(at, path)| violation(source, at, format!("{} is a re-export", path.join("::"))))
        .collect()
}

/// The modules and items of resources that the console may use, some of them in one file only: sessions, the rendering of
/// texts, the built-in templates, and the rule which scope includes another.
const OF_CONSOLE: [(&str, Option<&str>); 4] = [
    ("resources::sessions", None),
    ("resources::sharing::page", None),
    ("resources::dashboards::templates", Some("console/pages/dashboards/forms.rs")),
    ("resources::api_keys::includes_scope", Some("console/pages/keys/access.rs")),
];

/// The console is a client of the API: it uses no store, no authorization and no rule.
pub fn console(source: &Source) -> Vec<Violation> {
    if source.top_part() != "console" {
        return Vec::new();
    }
    let is_allowed = |path: &str| {
        OF_CONSOLE.iter().any(|(allowed, file)| {
            path.starts_with(allowed) && file.is_none_or(|file| file == source.path)
        })
    };
    let paths = source.module_paths().into_iter();
    let rules = paths.filter(|(_, path)| matches!(&*path[0], "resources" | "store" | "auth"));
    let rules = rules.map(|(at, path)| (at, path.join("::")));
    rules
        .filter(|(_, path)| !is_allowed(path))
        .map(|(at, path)| violation(source, at, format!("the console may not use {path}")))
        .collect()
}

/// Returns the names in the list of resources.
pub fn listed_resources(list: &Source) -> BTreeSet<&str> {
    let (_, names) = list.code.split_once("$then! {").expect("the list of resources");
    let (names, _) = names.split_once('}').expect("the end of the list");
    let words = names.split_whitespace().filter(|word| !word.ends_with(':'));
    words.map(|word| word.trim_end_matches(';')).collect()
}

/// The function that registers a resource module's routes.
const ROUTES: &str = "pub fn routes(routes: &mut Routes) {";

/// The `http.rs` of every resource module has the same items in the same order: imports, the paths, `routes`,
/// then a handler for each route and their shared code. Only `routes` is public, and the modules below it.
pub fn wire(source: &Source) -> Vec<Violation> {
    if source.resource().is_none_or(|(_, file)| file != "http.rs") {
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
        } else if at != routes && begins(line, &["pub"]) && !begins(line, &["pub mod "]) {
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

/// A type in the schema of a response also writes the response: it is serialized, or `output!` declares it.
pub fn responses(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for at in source.places("derive(") {
        let derived = source.code[at..].split(')').next().unwrap_or_default();
        let is_described = derived.contains("ToSchema") && !derived.contains("Serialize");
        if is_described && source.path != "base/json/output.rs" {
            found.push(violation(source, at, "derive Serialize too, or use output!"));
        }
    }
    found
}

/// Names of clocks, and of waiting for them.
const CLOCKS: [&str; 4] = ["Instant", "elapsed", "sleep", "sleep_until"];

/// The files of the tests that have a clock, and what for.
const WITH_A_CLOCK: [&str; 2] = [
    // The limit after which a test hangs.
    "support/wait.rs",
    // Latencies, which are only printed.
    "chaos/abuse/neighbours/victim.rs",
];

/// A test waits for events. What happens within a time depends on the machine.
pub fn clocks(test: &Source) -> Vec<Violation> {
    if WITH_A_CLOCK.contains(&test.path.as_str()) {
        return Vec::new();
    }
    let path = format!("tests/{}", test.path);
    let named = test.words().filter(|(_, word)| CLOCKS.contains(word));
    named
        .map(|(at, word)| {
            Violation::new(&path, test.line(at), format!("{word}: use support::wait"))
        })
        .collect()
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
