//! What a command says of its outcome, if it cannot say it where it should.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::prelude::*;

fn full() -> fs::File {
    fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device")
}

/// Runs a command with a full stdout. Returns its exit code and its errors.
fn with_full_stdout(command: &mut Command) -> (Option<i32>, String) {
    let child = command.stdout(full()).stderr(Stdio::piped()).spawn().expect("a process");
    let output = child.wait_with_output().expect("an exit");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn command_whose_output_is_lost_fails() {
    let (site, _) = DataFolder::with_workspace();
    let key = ["key", "create", "--email", OWNER, "--label", "L", "--scope", "*"];
    for args in [
        &key[..],
        &["init", "--email", OWNER, "--data", "new.redb"],
        &["organization", "create", "Two", "--owner", OWNER],
        &["organization", "list"],
        &["user", "create", "--email", "ann@x.example"],
        &["user", "list"],
        &["user", "deactivate", "ann@x.example"],
        &["key", "list"],
        &["console", OWNER],
        &["config"],
        &["completions", "bash"],
        &["man"],
        &["man", "pages"],
        &["check"],
        &["compact"],
        &["backup", "copy.redb"],
        &["restore", "copy.redb"],
        &["export", "all.jsonl"],
        &["export"],
        &["export", "-"],
        &["import", "all.jsonl", "--data", "imported.redb"],
        &["secrets", "rotate"],
        &["--help"],
        &["help", "serve"],
        &["--version"],
    ] {
        let (code, said) = with_full_stdout(&mut site.steward(args));
        assert_eq!(code, Some(1), "{args:?}: {said}");
        let told = "could not be written to stdout: No space left";
        assert!(said.starts_with("steward: ") && said.contains(told), "{args:?}: {said}");
        assert_eq!(said.matches('\n').count(), 1, "{args:?}: {said}");
    }
    // The key exists, so the message names it.
    let keys = site.json(&["key", "list"]);
    let id = keys["results"][1]["id"].as_str().expect("an id").to_owned();
    site.json(&["key", "revoke", &id]);
    let (_, said) = with_full_stdout(&mut site.steward(&key));
    let keys = site.json(&["key", "list"]);
    let made = keys["results"].as_array().expect("a list").last().expect("a key");
    assert!(said.contains(made["id"].as_str().expect("an id")), "{said}");
    assert!(!said.contains("phx_"), "{said}");
}

#[test]
fn reader_of_a_list_may_leave_early() {
    let (site, _) = DataFolder::with_workspace();
    for (args, code) in [
        (&["user", "list"][..], 0),
        (&["man"], 0),
        (&["--help"], 0),
        (&["user", "create", "--email", "ann@x.example"], 1),
        // Only a part of an export was read.
        (&["export"], 1),
    ] {
        let mut command = site.steward(args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a process");
        drop(child.stdout.take());
        assert_eq!(child.wait().expect("an exit").code(), Some(code), "{args:?}");
    }
}

#[test]
fn failure_keeps_its_exit_code_without_stderr() {
    let site = DataFolder::empty();
    for (args, code) in [
        (&["check"][..], 1),
        (&["user", "list", "--config", "none.toml"], 2),
        (&["nonsense"], 2),
        (&["serve", "--listen", "nonsense"], 2),
        (&["healthcheck"], 1),
    ] {
        let mut command = site.steward(args);
        let status = command.stdout(Stdio::null()).stderr(full()).status().expect("an exit");
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn path_that_is_not_unicode_is_no_failure() {
    let (site, _) = DataFolder::with_workspace();
    let name = |text: &[u8]| OsStr::from_bytes(text).to_owned();
    let run = |args: &[&OsStr]| {
        let mut command = site.steward(&["--json"]);
        command.args(args);
        crate::support::process::CommandOutput::new(&mut command).json()
    };
    let (copy, export, data) = (name(b"c\xff.redb"), name(b"e\xff.jsonl"), name(b"d\xff.redb"));
    let word = |text: &'static str| OsStr::new(text);
    assert_eq!(run(&[word("backup"), &copy])["file"], "c\u{fffd}.redb");
    assert_eq!(run(&[word("export"), word("--secrets"), &export])["file"], "e\u{fffd}.jsonl");
    assert_eq!(run(&[word("import"), &export, word("--data"), &data])["file"], "d\u{fffd}.redb");
    let restored = run(&[word("restore"), &copy, word("--data"), &data]);
    assert_eq!(restored["file"], "d\u{fffd}.redb");
    assert!(restored["replaced"].as_str().expect("a path").starts_with("d\u{fffd}.redb.replaced-"));
    assert_eq!(run(&[word("check"), word("--data"), &data])["problem_count"], 0);
}

#[test]
fn dash_is_stdout_or_refused() {
    let (site, _) = DataFolder::with_workspace();
    let before = site.names();
    for args in [
        &["backup", "-"][..],
        &["man", "-"],
        &["init", "--email", OWNER, "--data", "-"],
        &["serve", "--listen", "127.0.0.1:0", "--backup-dir", "-"],
        &["user", "list", "--copy", "-"],
    ] {
        site.run(args).assert_usage_error("write `./-` for a file of that name");
    }
    assert_eq!(site.names(), before);
    assert_eq!(site.run(&["export", "-"]).ok(), site.run(&["export"]).ok());
    site.json(&["backup", "./-"]);
    assert!(site.names().contains(&"-".to_owned()));
}
