//! Tests that each rule finds its violations.

use super::rules::{
    Violation, clocks, console, crates, definitions, independence, purity, responses, size, wire,
};
use super::source::Source;

/// Returns the lines at which a file with this path and text violates a rule.
fn broken(rule: fn(&Source) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
    rule(&Source::new(path, text)).iter().map(|violation| violation.line).collect()
}

const NONE: [usize; 0] = [];

#[test]
fn violation_shows_its_file_and_line() {
    let found = crates(&Source::new("ids.rs", "use std;\nuse redb::Database;\n"));
    let violations = found.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(violations, ["src/ids.rs:2: redb may be named only in store"]);
}

#[test]
fn crate_outside_its_allowed_modules_is_found() {
    let text = "// redb, axum and clap\nuse redb::Table;\nlet x: axum::Router;\nuse clap::Args;\n";
    assert_eq!(broken(crates, "ids.rs", text), [2, 3, 4]);
    assert_eq!(broken(crates, "store/read.rs", text), [3, 4]);
    assert_eq!(broken(crates, "config/mod.rs", text), [2, 3]);
    assert_eq!(broken(crates, "cli/serve.rs", text), [2]);
    assert_eq!(broken(crates, "cli/mod.rs", text), [2, 3]);
    assert_eq!(broken(crates, "resources/users/http.rs", text), [2, 4]);
    assert_eq!(broken(crates, "resources/users/mod.rs", text), [2, 3, 4]);
    assert_eq!(broken(crates, "auth/authorize.rs", text), [2, 3, 4]);
}

#[test]
fn waiting_clock_or_random_use_in_a_rule_is_found() {
    let text =
        "x.await;\n// .await\nClock::System;\nSystemTime::now();\nSeed::take();\nawaited();\n";
    assert_eq!(broken(purity, "resources/users/mod.rs", text), [1, 3, 4, 5]);
    assert_eq!(broken(purity, "resources/projects/grants.rs", text), [1, 3, 4, 5]);
    assert_eq!(broken(purity, "resources/users/http.rs", text), NONE);
    assert_eq!(broken(purity, "resources/users/tests.rs", text), NONE);
    assert_eq!(broken(purity, "app/mod.rs", text), NONE);
}

#[test]
fn clock_of_a_test_is_found() {
    let text = "// sleep\nthread::sleep(SHORT);\nlet x = Instant::now();\nasleep(\"sleep\");\n";
    assert_eq!(broken(clocks, "it/users.rs", text), [2, 3]);
    assert_eq!(broken(clocks, "support/wait.rs", text), NONE);
}

#[test]
fn rule_that_uses_a_caller_of_rules_is_found() {
    let text = "use crate::base::error::Error;\nuse crate::{app::App};\nuse super::super::super::http::path;\n";
    assert_eq!(broken(independence, "resources/users/api.rs", text), [2, 3]);
    assert_eq!(broken(independence, "resources/users/http.rs", text), NONE);
    assert_eq!(broken(independence, "resources/users/http/body.rs", text), NONE);
    assert_eq!(broken(independence, "auth/mod.rs", text), NONE);
}

#[test]
fn rule_that_the_console_uses_is_found() {
    let text = "use crate::resources::{members, sessions};\nuse crate::store::Tx;\nuse crate::auth;\n\
                use crate::resources::dashboards::templates::built_in;\nuse crate::app::App;\n";
    assert_eq!(broken(console, "console/visit.rs", text), [1, 2, 3, 4]);
    assert_eq!(broken(console, "console/pages/dashboards/forms.rs", text), [1, 2, 3]);
    assert_eq!(broken(console, "http/console.rs", text), NONE);
}

#[test]
fn http_file_with_another_structure_is_found() {
    let good = "use a;\n\nconst LIST: &str = \"/a/\";\n\npub fn routes(routes: &mut Routes) {\n    \
                routes.get(LIST, list);\n}\n\nasync fn list() {}\n\nfn shared() {}\n";
    let path = "resources/users/http.rs";
    assert_eq!(broken(wire, path, good), NONE);
    assert_eq!(broken(wire, "resources/users/mod.rs", ""), NONE);
    assert_eq!(broken(wire, path, ""), [1]);
    assert_eq!(broken(wire, path, &format!("fn early() {{}}\n{good}")), [1]);
    let late =
        "async fn lost() {}\nuse b;\nconst B: u8 = 1;\npub fn open() {}\nfn f() { \"/b/\" }\n";
    assert_eq!(broken(wire, path, &format!("{good}{late}")), [12, 13, 14, 15, 16]);
}

#[test]
fn schema_without_writer_is_found() {
    let text = "#[derive(Debug, ToSchema)]\n#[derive(Deserialize, utoipa::ToSchema)]\n\
                #[derive(\n    Serialize,\n    ToSchema,\n)]\n#[derive(Deserialize)]\n";
    assert_eq!(broken(responses, "resources/users/mod.rs", text), [1, 2]);
    assert_eq!(broken(responses, "base/json/output.rs", text), NONE);
}

#[test]
fn unfinished_or_too_long_file_is_found() {
    let text = "todo!();\n// FIXME\nunimplemented!();\n// todo! is no code\n";
    assert_eq!(broken(size, "ids.rs", text), [1, 3, 2]);
    assert_eq!(broken(size, "ids.rs", &"\n".repeat(400)), NONE);
    assert_eq!(broken(size, "ids.rs", &"\n".repeat(401)).len(), 1);
}

#[test]
fn reexport_of_the_store_is_found() {
    let text = "use crate::store::{Row, reads::Snapshot};\nuse super::super::Tx;\n$crate::store::Tx;\nuse super::Key;\n";
    assert_eq!(broken(definitions, "store/write/apply.rs", text), [1, 2]);
    assert_eq!(broken(definitions, "store/tests/writing.rs", text), NONE);
    assert_eq!(broken(definitions, "store/mod.rs", text), NONE);
    assert_eq!(broken(definitions, "app/mod.rs", text), NONE);
}
