//! `export` and `import` with the real binary, both without a server and beside a running server.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::data::export_many::many;
use crate::support::process::{CommandOutput, DataFolder, Server, until};

struct TestSetup {
    server: Option<Server>,
    site: DataFolder,
    key: String,
    project: Value,
}

impl TestSetup {
    fn new(serving: bool) -> Self {
        let (site, made) = DataFolder::with_workspace();
        let key = made["api_key"].as_str().expect("a key").to_owned();
        let place = Self { server: None, site, key, project: made["project_id"].clone() };
        let server = place.site.serve(&[]);
        server.post(&place.dashboards(), &place.key, &json!({ "name": "A" })).ok();
        // The use of a key is on disk a moment later.
        until("the key's use is recorded", || {
            place.site.run(&["export", "--secrets"]).ok().contains("api_key_uses").then_some(())
        });
        if serving {
            return Self { server: Some(server), ..place };
        }
        server.stop();
        place
    }

    fn dashboards(&self) -> String {
        format!("/api/projects/{}/dashboards/", self.project)
    }
}

fn each_way(test: impl Fn(&TestSetup)) {
    for serving in [false, true] {
        let place = TestSetup::new(serving);
        test(&place);
        place.site.check();
    }
}

#[test]
fn export_is_written_to_stdout_or_a_private_file() {
    each_way(|place| {
        let text = place.site.run(&["export"]).ok();
        assert!(text.starts_with("{\"steward_export\":1,") && text.ends_with("}\n"));
        assert!(!text.contains("argon2") && text.contains("\"name\":\"A\""));
        let told = place.site.json(&["export", "--secrets", "all.jsonl"]);
        let written = fs::read_to_string(place.site.path("all.jsonl")).expect("the export");
        let lines = written.lines().count() - 1;
        let expected =
            json!({ "file": "all.jsonl", "lines": lines, "bytes": written.len(), "secrets": true });
        assert_eq!(told, expected);
        assert_eq!(place.site.run(&["export", "--secrets"]).ok(), written);
        assert!(written.contains("argon2"));
        let path = place.site.path("all.jsonl");
        let bits = path.metadata().expect("metadata").permissions().mode();
        assert_eq!(bits & 0o777, 0o600, "an export may be a credential");
    });
}

#[test]
fn export_overwrites_nothing_and_leaves_no_files_on_failure() {
    each_way(|place| {
        fs::write(place.site.path("there"), "mine").expect("written");
        let known = place.site.names();
        let refused = place.site.run(&["export", "there"]);
        refused.assert_failed("there already exists and was not changed");
        place.site.run(&["export", "steward.redb"]).assert_failed("steward.redb already exists");
        place.site.run(&["export", "nowhere/all.jsonl"]).assert_failed("nowhere");
        assert_eq!(fs::read_to_string(place.site.path("there")).expect("the file"), "mine");
        assert_eq!(place.site.names(), known);
    });
}

#[test]
fn export_reports_write_errors() {
    let place = TestSetup::new(false);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let mut command = place.site.steward(&["export"]);
    let child = command.stdout(full).stderr(Stdio::piped()).spawn().expect("a process");
    let output = child.wait_with_output().expect("an exit");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.starts_with("steward: ") && said.contains("No space left"), "{said}");
}

#[test]
fn import_creates_a_file_that_works_with_the_same_keys() {
    each_way(|place| {
        place.site.json(&["export", "--secrets", "all.jsonl"]);
        let told = place.site.json(&["import", "all.jsonl", "--data", "new.redb"]);
        let text = fs::read_to_string(place.site.path("all.jsonl")).expect("the export");
        let lines = text.lines().count() - 1;
        let expected = json!({ "file": "new.redb", "lines": lines, "secrets": true, "next": null });
        assert_eq!(told, expected);
        assert_eq!(place.site.run(&["export", "--secrets", "--data", "new.redb"]).ok(), text);
        let bits = place.site.path("new.redb").metadata().expect("metadata").permissions().mode();
        assert_eq!(bits & 0o777, 0o600);
        let server = place.site.serve(&["--data", "new.redb"]);
        assert_eq!(server.dashboards(&place.project, &place.key), [(1, "A".to_owned())]);
        server.stop();
        assert_eq!(place.site.json(&["check", "--data", "new.redb"])["problem_count"], 0);
    });
}

#[test]
fn import_without_secrets_says_how_to_create_new_keys() {
    let place = TestSetup::new(false);
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
    assert_eq!(server.dashboards(&place.project, key), [(1, "A".to_owned())]);
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

#[test]
fn exports_under_load_are_consistent_snapshots() {
    let place = TestSetup::new(true);
    let server = place.server.as_ref().expect("a server");
    let over = AtomicBool::new(false);
    let mut before = Vec::new();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut connection = server.connect();
                while !over.load(Ordering::Relaxed) {
                    let (path, sent) = (place.dashboards(), json!({ "name": "under load" }));
                    let reply = connection.send("POST", &path, &place.key, Some(&sent));
                    assert_eq!(reply.expect("an answer").status, 201, "an export disturbs writers");
                }
            });
        }
        for name in ["a", "b", "c"] {
            before.push(server.dashboards(&place.project, &place.key).len());
            place.site.json(&["export", "--secrets", &format!("{name}.jsonl")]);
        }
        over.store(true, Ordering::Relaxed);
    });
    for (name, before) in ["a", "b", "c"].iter().zip(before) {
        let data = format!("{name}.redb");
        place.site.json(&["import", &format!("{name}.jsonl"), "--data", &data]);
        let copy = place.site.serve(&["--data", &data]);
        let mut found: Vec<_> =
            copy.dashboards(&place.project, &place.key).into_iter().map(|(id, _)| id).collect();
        found.sort_unstable();
        assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>(), "{name} mixes two states");
        assert!(found.len() >= before, "{name} lost dashboards");
        copy.stop();
        assert_eq!(place.site.json(&["check", "--data", &data])["problem_count"], 0);
    }
    // Without writes, the exports beside the server, of a backup, and without a server are equal.
    let live = place.site.run(&["export", "--secrets"]).ok();
    place.site.json(&["backup", "copy.redb"]);
    assert!(place.site.run(&["export", "--secrets", "--data", "copy.redb"]).ok() == live);
    let TestSetup { server, site, .. } = place;
    server.expect("a server").stop();
    assert!(site.run(&["export", "--secrets"]).ok() == live);
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

#[test]
fn concurrent_imports_create_one_file() {
    let site = DataFolder::empty();
    fs::write(site.path("many.jsonl"), many(300)).expect("written");
    let runs = thread::scope(|scope| {
        let run = || scope.spawn(|| site.run(&["import", "many.jsonl"]));
        [run(), run(), run()].map(|run| run.join().expect("a run"))
    });
    let mut made = 0;
    for run in runs {
        if run.code == Some(0) {
            made += 1;
        } else {
            let said = run.stderr;
            assert!(said.contains("in use") || said.contains("already exists"), "{said}");
        }
    }
    assert_eq!(made, 1);
    site.check();
}
