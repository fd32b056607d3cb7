//! `export` and `import` with the real binary, both without a server and beside a running server.

use std::io::Write;

use crate::cli::{self, TestSetup};
use crate::prelude::*;
use crate::support::exports::{first_of, lines, sealed};

/// Runs a test on a file with a dashboard, without a server and beside one.
fn each_way(test: impl Fn(&TestSetup)) {
    cli::each_way(|place| {
        place.with(|server| {
            server.post(&place.dashboards, &place.key, &json!({ "name": "A" })).ok();
            // The use of a key is on disk a moment later.
            let export = || place.site.run(&["export", "--secrets"]).ok();
            until("the key's use is recorded", || export().contains("api_key_uses").then_some(()));
        });
        test(place);
    });
}

#[test]
fn export_is_written_to_stdout_or_a_file_and_imported_with_the_same_keys() {
    each_way(|place| {
        let text = place.site.run(&["export"]).ok();
        assert!(text.starts_with("{\"steward_export\":1,") && text.ends_with("}\n"));
        assert!(!text.contains("argon2") && text.contains("\"name\":\"A\""));
        let told = place.site.json(&["export", "--secrets", "all.jsonl"]);
        let written = fs::read_to_string(place.site.path("all.jsonl")).expect("the export");
        let (lines, bytes) = (written.lines().count() - 1, written.len());
        let expected =
            json!({ "file": "all.jsonl", "lines": lines, "bytes": bytes, "secrets": true });
        assert_eq!(told, expected);
        assert_eq!(place.site.run(&["export", "--secrets"]).ok(), written);
        assert!(written.contains("argon2"));
        place.site.json(&["backup", "copy.redb"]);
        let of_backup = place.site.run(&["export", "--secrets", "--data", "copy.redb"]).ok();
        assert!(of_backup == written, "a backup beside the server is the same moment");

        let told = place.site.json(&["import", "all.jsonl", "--data", "new.redb"]);
        let expected = json!({ "file": "new.redb", "lines": lines, "secrets": true, "next": null });
        assert_eq!(told, expected);
        assert_eq!(place.site.run(&["export", "--secrets", "--data", "new.redb"]).ok(), written);
        let server = place.site.serve(&["--data", "new.redb"]);
        assert_eq!(server.dashboards(&place.dashboards, &place.key), [(1, "A".to_owned())]);
        server.stop();
        assert_eq!(place.site.json(&["check", "--data", "new.redb"])["problem_count"], 0);
    });
}

#[test]
fn import_without_secrets_says_how_to_create_new_keys() {
    let place = TestSetup::new(false);
    place.add("A");
    let export = place.site.run(&["export"]).ok();
    fs::write(place.site.path("open.jsonl"), &export).expect("written");
    let stdin = fs::File::open(place.site.path("open.jsonl")).expect("the export");
    let args = ["import", "-", "--data", "new.redb", "--json"];
    let mut command = place.site.steward(&args);
    let told = CommandOutput::new(command.stdin(stdin)).json();
    let next = told["next"].as_str().expect("what to do next");
    assert!(next.contains("steward key create"), "{next}");
    let email = ["--email", "owner@corp.example", "--label", "anew", "--scope", "*"];
    let made = place.site.json(&[&["key", "create", "--data", "new.redb"], &email[..]].concat());
    let server = place.site.serve(&["--data", "new.redb"]);
    assert_eq!(server.get("/api/users/@me/", &place.key).status, 401);
    let key = made["value"].as_str().expect("a value");
    assert_eq!(server.dashboards(&place.dashboards, key), [(1, "A".to_owned())]);
    server.stop();
    assert_eq!(place.site.json(&["check", "--data", "new.redb"])["problem_count"], 0);
}

#[test]
fn import_is_rejected_if_the_data_file_exists_or_is_served() {
    each_way(|place| {
        place.site.json(&["export", "--secrets", "all.jsonl"]);
        fs::write(place.site.path("text"), "no export\n").expect("written");
        let known = place.site.names();
        let exists = "steward.redb already exists and was not changed";
        place.site.run(&["import", "all.jsonl"]).assert_failed(exists);
        let new = ["--data", "new.redb"];
        let run = |file| place.site.run(&[&["import", file], &new[..]].concat());
        run("text").assert_failed("it is not a Steward export: line 1: the line is not valid JSON");
        run("missing").assert_failed("cannot open missing: No such file");
        run("steward.redb").assert_failed("it is not a Steward export: line 1");
        assert_eq!(place.site.names(), known);
    });
}

/// Returns an export with `count` dashboards.
fn many(count: u64) -> Vec<u8> {
    let Served { site, server, key, dashboards } = Served::with(&[]);
    server.post(&dashboards, &key, &json!({ "name": "Dashboard 1" })).ok();
    server.stop();
    let mut lines = lines(site.run(&["export", "--secrets"]).ok().as_bytes());
    let at = first_of(&lines, "dashboards");
    let one = String::from_utf8(lines[at].clone()).expect("text");
    assert!(one.contains("\"id\":1,") && one.contains("Dashboard 1"));
    let number = |number| {
        one.replace("\"id\":1,", &format!("\"id\":{number},"))
            .replace("Dashboard 1", &format!("Dashboard {number}"))
            .into_bytes()
    };
    lines.splice(at..=at, (1..=count).map(number));
    let sequence = "{\"of\":\"dashboards\",\"last\":";
    let line = lines.iter_mut().find(|line| String::from_utf8_lossy(line).contains(sequence));
    *line.expect("a sequence") =
        format!("{{\"table\":\"sequences\",\"meta\":{sequence}{count}}}}}\n").into_bytes();
    sealed(&lines)
}

#[test]
fn interrupted_import_leaves_no_data_file_and_does_not_block_the_next() {
    let site = DataFolder::empty();
    let export = many(1500);
    fs::write(site.path("many.jsonl"), &export).expect("written");
    let (draft, parts) = (site.path("steward.redb.creating"), 5);
    for part in 0..=parts {
        let mut import = site.steward(&["import", "-"]);
        let import = import.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut import = import.expect("a process");
        let mut lines = import.stdin.take().expect("stdin is a pipe");
        lines.write_all(&export[..export.len() * part / parts]).expect("a reader");
        until("the import has begun", || (draft.exists() || site.data().exists()).then_some(()));
        // With complete input, the import runs to its end and is killed there or somewhere before.
        if part == parts {
            drop(lines);
        }
        let _ = import.kill();
        import.wait().expect("an exit");
        if site.data().exists() {
            assert_eq!(part, parts, "the file appeared before the whole input was read");
            site.check();
            fs::remove_file(site.data()).expect("removed");
        }
    }
    site.json(&["import", "many.jsonl"]);
    site.check();
    let whole = fs::read_to_string(site.path("many.jsonl")).expect("the export");
    assert!(site.run(&["export", "--secrets"]).ok() == whole);
    assert!(!site.names().iter().any(|name| name.contains("creating")), "{:?}", site.names());
}
