//! Where the data file, its backups and what belongs to them lie: links, permissions, owners, and files that nobody may
//! change.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::time::SystemTime;

use crate::prelude::*;
use crate::support::process::request;

fn mode(path: &Path) -> u32 {
    path.metadata().expect("metadata").permissions().mode() & 0o777
}

#[test]
fn link_without_a_target_is_refused_by_name_and_nothing_is_created() {
    let (site, _) = DataFolder::with_workspace();
    site.json(&["backup", "copy.redb"]);
    site.json(&["export", "--secrets", "all.jsonl"]);
    symlink("gone/steward.redb", site.path("link.redb")).expect("a link");
    let before = site.files();
    for command in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["init", "--email", OWNER],
        &["restore", "copy.redb"],
        &["import", "all.jsonl"],
        &["backup", "other.redb"],
        &["export", "other.jsonl"],
        &["check"],
        &["user", "list"],
        &["compact"],
    ] {
        let part = "link.redb is a symbolic link to gone/steward.redb, which cannot be reached";
        site.run(&[command, &["--data", "link.redb"]].concat()).assert_failed(part);
        assert_eq!(site.files(), before, "{command:?}");
    }
    site.run(&["restore", "link.redb"]).assert_failed("link.redb is a symbolic link to gone");
    site.run(&["init", "--email", OWNER, "--data", "new.redb", "--secrets-of", "link.redb"])
        .assert_failed("link.redb is a symbolic link to gone");
    for command in [&["backup", "link.redb"][..], &["export", "link.redb"]] {
        site.run(command).assert_failed("link.redb already exists and was not changed");
    }
    assert_eq!(site.files(), before);
    symlink("copy.redb", site.path("good.redb")).expect("a link");
    site.run(&["init", "--email", OWNER, "--data", "new.redb", "--secrets-of", "good.redb"]).ok();
    // Commands that need no data go on.
    site.run(&["config", "--data", "link.redb"]).ok();
}

#[test]
fn every_file_with_data_is_private_whatever_was_in_its_place() {
    let site = DataFolder::empty();
    let command = |args: &[&str]| {
        let mut command = site.steward(args);
        // A process without restrictions on the mode of its files.
        without_umask(&mut command);
        CommandOutput::new(&mut command).ok()
    };
    command(&["init", "--email", OWNER]);
    command(&["backup", "copy.redb"]);
    command(&["export", "--secrets", "all.jsonl"]);
    command(&["import", "all.jsonl", "--data", "imported.redb"]);
    for name in ["steward.redb", "copy.redb", "all.jsonl", "imported.redb"] {
        assert_eq!(mode(&site.path(name)), 0o600, "{name}");
    }
    for change in [&["restore", "copy.redb"][..], &["compact"]] {
        set_mode(site.data(), 0o666);
        command(change);
        assert_eq!(mode(&site.data()), 0o600, "{change:?}");
    }
    for path in site.names().iter().map(|name| site.path(name)) {
        if path.extension().is_some_and(|ending| ending == "lock") {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
    let first = DataFolder::empty();
    fs::write(first.path("steward.redb.first-key"), "old").expect("written");
    set_mode(first.path("steward.redb.first-key"), 0o666);
    first.serve(&[]).stop();
    assert_eq!(mode(&first.path("steward.redb.first-key")), 0o600);
}

/// Starts the command through a shell that lets every bit of a mode through.
fn without_umask(command: &mut Command) {
    let program = command.get_program().to_owned();
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let folder = command.get_current_dir().expect("a folder").to_owned();
    *command = cleared("sh");
    command.current_dir(folder).args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(program).args(args);
}

/// The bytes, the mode and the times of a file.
fn state(path: &Path) -> (Vec<u8>, u32, SystemTime, (i64, i64)) {
    let found = path.metadata().expect("metadata");
    let modified = found.modified().expect("a time");
    (fs::read(path).expect("a file"), found.mode(), modified, (found.ctime(), found.ctime_nsec()))
}

#[test]
fn backup_is_read_without_a_trace() {
    let (site, made) = DataFolder::with_workspace();
    let folder = site.path("backups");
    fs::create_dir(&folder).expect("a folder");
    site.json(&["backup", "backups/copy.redb"]);
    let program = site.program_for_all();
    let backup = folder.join("copy.redb");
    let is_root = geteuid().is_root();
    if is_root {
        chown(&backup, Some(NOBODY), Some(NOBODY)).expect("another owner");
    }
    set_mode(&backup, 0o400);
    // Another user served the backup once.
    let lock = folder.join("copy.redb.lock");
    fs::write(&lock, "").expect("a lock");
    set_mode(&lock, 0o600);
    // Another user cannot even list the folder.
    set_mode(&folder, if is_root { 0o711 } else { 0o555 });
    let elsewhere = site.create_folder("elsewhere", 0o777);
    let before = state(&backup);
    let run = |args: &[&str]| {
        let output = CommandOutput::new(&mut as_nobody(&program, &elsewhere, args));
        assert!(state(&backup) == before, "{args:?} changed the backup");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2, "{args:?} left something");
        output
    };
    let data = ["--data", "../backups/copy.redb", "--json"];
    let json = |args: &[&str]| run(&[args, &data].concat()).json();
    assert_eq!(json(&["check"])["problem_count"], 0);
    assert_eq!(json(&["user", "list"])["results"][0]["email"], OWNER);
    assert_eq!(json(&["organization", "list"])["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(json(&["key", "list"])["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(json(&["export", "all.jsonl"])["secrets"], false);
    assert_eq!(json(&["backup", "again.redb"])["values"], json(&["check"])["values"]);
    run(&["init", "--email", OWNER, "--secrets-of", "../backups/copy.redb", "--data", "cell.redb"])
        .ok();
    run(&["restore", "../backups/copy.redb", "--data", "restored.redb"]).ok();
    // What would change the backup is refused by the system.
    let key = ["key", "create", "--email", OWNER, "--label", "L", "--scope", "*"];
    run(&[&key[..], &data[..2]].concat()).assert_failed("Permission denied");

    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", "restored.redb"];
    let server = Server::start(&mut as_nobody(&program, &elsewhere, &serve));
    let server = server.expect("it serves the restored file");
    assert_eq!(server.get("/api/users/@me/", made["api_key"].as_str().expect("a key")).status, 200);
    server.stop();
    // So that the folder can be deleted.
    set_mode(&folder, 0o755);
}

#[test]
fn data_file_that_no_server_has_open_is_read_without_a_trace() {
    let (site, _) = DataFolder::with_workspace();
    let states = || (state(&site.data()), state(&site.path("steward.redb.lock")));
    let before = states();
    for args in [&["check"][..], &["user", "list"], &["key", "list"], &["export"]] {
        site.run(args).ok();
        assert!(states() == before, "{args:?} changed a file");
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| drop(site.json(&["user", "list"])));
        }
    });
}

#[test]
fn data_file_of_a_killed_server_is_read_without_a_repair() {
    let Served { site, server, key, dashboards } = Served::with(&[]);
    assert_eq!(takes_writes(&server, &dashboards, &key), (true, 201));
    let once =
        request("POST", &dashboards, &key, "Idempotency-Key: one\r\n", r#"{"name": "Once"}"#);
    let send = |server: &Server| {
        let mut connection = server.connect();
        connection.write(&once).expect("sent");
        connection.reply().expect("an answer")
    };
    let first = send(&server);
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, None));
    server.kill();
    assert!(site.path("steward.redb.sock").exists(), "a killed server must leave its socket");
    let before = state(&site.data());
    for args in [
        &["check"][..],
        &["user", "list"],
        &["export"],
        &["backup", "copy.redb"],
        &["restore", "steward.redb", "--data", "restored.redb"],
    ] {
        site.run(args).ok();
        assert!(state(&site.data()) == before, "{args:?} changed the file");
    }
    for whole in ["copy.redb", "restored.redb", "steward.redb"] {
        assert_eq!(site.json(&["check", "--data", whole])["problem_count"], 0);
        let server = site.serve(&["--data", whole]);
        assert_eq!(server.dashboards(&dashboards, &key).len(), 2, "{whole}");
        assert_eq!(site.json(&["user", "list", "--data", whole])["results"][0]["id"], 1);
        if whole == "steward.redb" {
            let again = send(&server);
            assert_eq!(again.header("idempotent-replayed"), Some("true"));
            assert_eq!((again.status, again.json()), (201, first.json()));
        }
        server.stop();
    }
}

#[test]
fn file_in_use_is_not_read_beside_its_server() {
    let (site, _) = DataFolder::with_workspace();
    site.json(&["backup", "copy.redb"]);
    let server = site.serve(&["--data", "copy.redb"]);
    // Without its lock file, the file itself tells.
    fs::remove_file(site.path("copy.redb.lock")).expect("removed");
    fs::remove_file(site.path("copy.redb.sock")).expect("removed");
    site.run(&["check", "--data", "copy.redb"]).assert_failed("copy.redb is in use");
    site.run(&["restore", "copy.redb", "--data", "new.redb"]).assert_failed("copy.redb is in use");
    server.stop();
    site.run(&["check", "--data", "copy.redb"]).ok();
}

/// Runs only as root, whose commands prepare what another user serves.
#[test]
fn what_a_command_of_root_leaves_belongs_to_the_user_of_the_server() {
    if !geteuid().is_root() {
        return;
    }
    let (source, _) = DataFolder::with_workspace();
    source.json(&["backup", "copy.redb"]);
    source.json(&["export", "--secrets", "all.jsonl"]);
    let (copy, export) = (source.path("copy.redb"), source.path("all.jsonl"));
    let (copy, export) = (copy.to_str().expect("a path"), export.to_str().expect("a path"));
    let key = ["key", "create", "--email", OWNER, "--label", "L", "--scope", "*"];
    for first in [
        &[&["init", "--email", OWNER][..]][..],
        &[&["restore", copy]],
        &[&["import", export]],
        &[&["user", "list"], &["restore", copy], &["check"], &key, &["compact"]],
    ] {
        let site = DataFolder::empty();
        let program = site.program_for_all();
        let folder = site.path("theirs");
        fs::create_dir(&folder).expect("a folder");
        chown(&folder, Some(NOBODY), Some(NOBODY)).expect("their folder");
        for args in first {
            let mut command = cleared(&program);
            command.current_dir(&folder).args(*args);
            drop(CommandOutput::new(&mut command));
        }
        for entry in fs::read_dir(&folder).expect("a folder") {
            let (path, found) =
                entry.map(|it| (it.path(), it.metadata().expect("it"))).expect("it");
            assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY), "{first:?} left {path:?}");
        }
        let mut serve = as_nobody(&program, &folder, &["serve", "--listen", "127.0.0.1:0"]);
        Server::start(&mut serve).unwrap_or_else(|run| panic!("{first:?}: {run:?}")).stop();
    }
}

#[test]
fn failed_first_start_leaves_no_key() {
    let site = DataFolder::empty();
    // A folder in the place of the draft: the first start fails after it has the key.
    fs::create_dir(site.path("steward.redb.creating")).expect("a folder");
    let run = site.try_serve(&[]).err().expect("it fails");
    run.assert_failed("steward.redb.creating");
    assert_eq!(site.names(), ["steward.redb.creating"]);
    // The error of the key file is not hidden by that of its removal.
    let site = DataFolder::empty();
    fs::create_dir(site.path("steward.redb.first-key")).expect("a folder");
    let run = site.try_serve(&[]).err().expect("it fails");
    run.assert_failed("cannot write steward.redb.first-key: ");
    assert_eq!(site.names(), ["steward.redb.first-key"]);
}

/// Returns whether the server is ready, and what a write answers.
fn takes_writes(server: &Server, list: &str, key: &str) -> (bool, u16) {
    let written = server.post(list, key, &json!({ "name": "A" })).status;
    (server.get("/_readyz", key).status == 200, written)
}

#[test]
fn data_file_that_was_removed_or_replaced_takes_no_write() {
    let Served { site, server, key, dashboards: list } = Served::with(&[]);
    site.json(&["backup", "copy.redb"]);
    assert_eq!(takes_writes(&server, &list, &key), (true, 201));
    let (data, aside) = (site.data(), site.path("aside.redb"));
    fs::rename(&data, &aside).expect("moved away");
    assert_eq!(takes_writes(&server, &list, &key), (false, 503));
    fs::copy(site.path("copy.redb"), &data).expect("another file");
    assert_eq!(takes_writes(&server, &list, &key), (false, 503));
    assert_eq!(server.get("/api/users/@me/", &key).status, 200, "reads go on");
    // What the server has can be saved.
    site.json(&["backup", "saved.redb"]);
    let saved = site.json(&["check", "--data", "saved.redb"]);
    assert_eq!(saved["problem_count"], 0);
    fs::rename(&aside, &data).expect("moved back");
    until("the file takes writes", || {
        (takes_writes(&server, &list, &key) == (true, 201)).then_some(())
    });
    for _ in 0..3 {
        let done = site.json(&["compact"]);
        assert!(done["bytes"].is_u64() && done["bytes_before"].is_u64(), "{done}");
        site.json(&["restore", "saved.redb"]);
        assert_eq!(takes_writes(&server, &list, &key), (true, 201), "it replaced the file itself");
    }
    let log = server.stop();
    assert!(log.contains("the data file was removed or replaced while it is open"), "{log}");
    assert!(log.contains("the data file is in its place again"), "{log}");
}
