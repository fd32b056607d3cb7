//! Tests that each rule finds its violations.

use super::rules::{
    Rule, clocks, console, crates, definitions, independence, purity, responses, size, wire,
};
use super::source::Source;

#[test]
fn violation_shows_its_file_and_line() {
    let found = crates(&Source::new("ids.rs", "use std;\nuse redb::Database;\n"));
    let violations = found.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(violations, ["src/ids.rs:2: redb may be named only in store"]);
}

#[test]
fn each_rule_finds_its_violations_in_the_files_that_it_is_about() {
    let crates_text =
        "// redb, axum and clap\nuse redb::Table;\nlet x: axum::Router;\nuse clap::Args;\n";
    let impure =
        "x.await;\n// .await\nClock::System;\nSystemTime::now();\nSeed::take();\nawaited();\n";
    let sleeping = "// sleep\nthread::sleep(SHORT);\nlet x = Instant::now();\nasleep(\"sleep\");\n";
    let calling = "use crate::base::error::Error;\nuse crate::{app::App};\nuse super::super::super::http::path;\n";
    let of_console = "use crate::resources::{members, sessions};\nuse crate::store::Tx;\nuse crate::auth;\n\
                      use crate::resources::dashboards::templates::built_in;\nuse crate::app::App;\n";
    let good = "use a;\n\nconst LIST: &str = \"/a/\";\n\npub fn routes(routes: &mut Routes) {\n    \
                routes.get(LIST, list);\n}\n\nasync fn list() {}\n\nfn shared() {}\n";
    let early = &format!("fn early() {{}}\n{good}");
    let late = &format!(
        "{good}async fn lost() {{}}\nuse b;\nconst B: u8 = 1;\npub fn open() {{}}\nfn f() {{ \"/b/\" }}\n"
    );
    let schemas = "#[derive(Debug, ToSchema)]\n#[derive(Deserialize, utoipa::ToSchema)]\n\
                   #[derive(\n    Serialize,\n    ToSchema,\n)]\n#[derive(Deserialize)]\n";
    let unfinished = "todo!();\n// FIXME\nunimplemented!();\n// todo! is no code\n";
    let (full, too_long) = (&"\n".repeat(400), &"\n".repeat(401));
    let reexports = "use crate::store::{Row, reads::Snapshot};\nuse super::super::Tx;\n$crate::store::Tx;\nuse super::Key;\n";
    let http = "resources/users/http.rs";
    let rules = "resources/users/mod.rs";
    // The rule, the path and the text of a file, and the lines that break the rule.
    let cases: &[(Rule, &str, &str, &[usize])] = &[
        (crates, "ids.rs", crates_text, &[2, 3, 4]),
        (crates, "store/read.rs", crates_text, &[3, 4]),
        (crates, "config/mod.rs", crates_text, &[2, 3]),
        (crates, "cli/serve.rs", crates_text, &[2]),
        (crates, "cli/mod.rs", crates_text, &[2, 3]),
        (crates, http, crates_text, &[2, 4]),
        (crates, rules, crates_text, &[2, 3, 4]),
        (crates, "auth/authorize.rs", crates_text, &[2, 3, 4]),
        (purity, rules, impure, &[1, 3, 4, 5]),
        (purity, "resources/projects/grants.rs", impure, &[1, 3, 4, 5]),
        (purity, http, impure, &[]),
        (purity, "resources/users/tests.rs", impure, &[]),
        (purity, "app/mod.rs", impure, &[]),
        (clocks, "it/users.rs", sleeping, &[2, 3]),
        (clocks, "support/wait.rs", sleeping, &[]),
        (independence, "resources/users/api.rs", calling, &[2, 3]),
        (independence, http, calling, &[]),
        (independence, "resources/users/http/body.rs", calling, &[]),
        (independence, "auth/mod.rs", calling, &[]),
        (console, "console/visit.rs", of_console, &[1, 2, 3, 4]),
        (console, "console/pages/dashboards/forms.rs", of_console, &[1, 2, 3]),
        (console, "http/console.rs", of_console, &[]),
        (wire, http, good, &[]),
        (wire, rules, "", &[]),
        (wire, http, "", &[1]),
        (wire, http, early, &[1]),
        (wire, http, late, &[12, 13, 14, 15, 16]),
        (responses, rules, schemas, &[1, 2]),
        (responses, "base/json/output.rs", schemas, &[]),
        (size, "ids.rs", unfinished, &[1, 3, 2]),
        (size, "ids.rs", full, &[]),
        (size, "ids.rs", too_long, &[402]),
        (definitions, "store/write/apply.rs", reexports, &[1, 2]),
        (definitions, "store/tests/writing.rs", reexports, &[]),
        (definitions, "store/mod.rs", reexports, &[]),
        (definitions, "app/mod.rs", reexports, &[]),
    ];
    for (at, (rule, path, text, lines)) in cases.iter().enumerate() {
        let found = rule(&Source::new(path, text));
        let found: Vec<_> = found.iter().map(|violation| violation.line).collect();
        assert_eq!(found, *lines, "case {at}: {path}");
    }
}
