//! `backup`, `restore` and `compact` with the real binary, both without a server and beside a running server.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::sync::mpsc;

use steward::testing::resources::record_registry;
use steward::testing::store::Progress;
use steward::testing::time::{Clock, ManualClock};

use crate::cli::{TestSetup, each_way};
use crate::prelude::*;
use crate::support::eventually;

impl TestSetup {
    pub fn add(&self, name: &str) {
        self.with(|server| server.post(&self.dashboards, &self.key, &json!({ "name": name })).ok());
    }

    /// Returns the names of the dashboards.
    fn names(&self) -> Vec<String> {
        self.with(|server| names(server, &self.dashboards, &self.key))
    }
}

fn names(server: &Server, list: &str, key: &str) -> Vec<String> {
    let mut names: Vec<_> =
        server.dashboards(list, key).into_iter().map(|(_, name)| name).collect();
    names.sort();
    names
}

/// Flips bits of the file at `path`, after its first pages.
fn corrupt(path: &Path) {
    let mut bytes = fs::read(path).expect("the file");
    bytes.iter_mut().skip(8192).step_by(97).for_each(|byte| *byte ^= 0x10);
    fs::write(path, bytes).expect("written");
}

#[test]
fn backup_contains_the_current_data_and_reports_its_properties() {
    each_way(|place| {
        place.add("A");
        let made = place.site.json(&["backup", "copy.redb"]);
        place.add("B");
        let members: Vec<_> = made.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["file", "values", "bytes", "blake3"]);
        let path = place.site.path("copy.redb");
        let bytes = fs::read(&path).expect("the backup");
        assert_eq!(made["file"], "copy.redb");
        assert_eq!(made["bytes"], bytes.len());
        assert_eq!(made["blake3"], blake3::hash(&bytes).to_hex().as_str());
        assert!(made["values"].as_u64().expect("a number") > 20);
        let bits = path.metadata().expect("metadata").permissions().mode();
        assert_eq!(bits & 0o777, 0o600, "a backup is a credential");
        let copy = place.site.serve(&["--data", "copy.redb"]);
        assert_eq!(names(&copy, &place.dashboards, &place.key), ["A"]);
        copy.stop();
        assert_eq!(place.site.json(&["check", "--data", "copy.redb"])["problem_count"], 0);
        assert_eq!(place.names(), ["A", "B"]);
    });
}

#[test]
fn backup_and_export_overwrite_nothing_and_leave_no_files_on_failure() {
    each_way(|place| {
        let lock = fs::File::create(place.site.path("copy.redb.lock")).expect("a lock");
        lock.lock().expect("another backup is being made");
        let refused = place.site.run(&["backup", "copy.redb"]);
        refused.assert_failed("copy.redb is in use by another steward");
        drop(lock);
        place.site.json(&["backup", "copy.redb"]);
        assert_eq!(place.site.json(&["check", "--data", "copy.redb"])["problem_count"], 0);
        fs::write(place.site.path("there"), "mine").expect("written");
        let known = place.site.names();
        let unwritable =
            [("backup", "cannot create nowhere/copy"), ("export", "cannot write to nowhere")];
        for (command, refusal) in unwritable {
            let refused = place.site.run(&[command, "there"]);
            refused.assert_failed("there already exists and was not changed");
            place.site.run(&[command, "steward.redb"]).assert_failed("already exists");
            place.site.run(&[command, "nowhere/copy"]).assert_failed(refusal);
        }
        assert_eq!(fs::read_to_string(place.site.path("there")).expect("the file"), "mine");
        assert_eq!(place.site.names(), known);
    });
}

#[test]
fn backup_of_a_damaged_file_fails_and_names_the_damage() {
    let place = TestSetup::new(false);
    place.add("A");
    corrupt(&place.site.path("steward.redb"));
    place.site.run(&["backup", "copy.redb"]).assert_failed("damaged");
    for name in ["copy.redb", "copy.redb.creating"] {
        assert!(!place.site.path(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn compaction_is_rejected_during_a_backup_without_blocking_writes() {
    let workspace = Workspace::new().await;
    let store = workspace.app.store().clone();
    let to = workspace.path().with_file_name("copy.redb");
    let ((begun, begins), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let (begun, released) = (Mutex::new(begun), Mutex::new(released));
    let progress = Progress::new(move |stage| {
        if stage.doing == "copying" && stage.done == 0 {
            begun.lock().expect("no panic").send(()).expect("a test that waits");
            released.lock().expect("no panic").recv().expect("a release");
        }
    });
    let backup = tokio::spawn({
        let store = store.clone();
        async move { store.backup(to, record_registry(), progress).await }
    });
    eventually("the backup begins", || begins.try_recv().ok()).await;
    let refused = store.compact(&Progress::silent()).await.expect_err("a backup is under way");
    let why = "a backup, an export, a check or another compaction is running; compact after it";
    assert_eq!((refused.status(), refused.to_string().as_str()), (400, why));
    store.write(|_| Ok(())).await.expect("a write");
    release.send(()).expect("the backup waits");
    backup.await.expect("no panic").expect("a backup");
    store.compact(&Progress::silent()).await.expect("compacted");
    workspace.assert_file_valid().await;
}

#[test]
fn restored_file_keeps_the_owner_of_the_replaced_one_and_needs_none() {
    let place = TestSetup::new(false);
    place.add("A");
    place.site.json(&["backup", "copy.redb"]);
    let (data, stranger) = (place.site.path("steward.redb"), 65_534);
    // Only root can change the owner of a file; for other users the owner stays the same.
    let owner =
        chown(&data, Some(stranger), Some(stranger)).map_or(geteuid().as_raw(), |()| stranger);
    place.site.json(&["restore", "copy.redb"]);
    let made = data.metadata().expect("the file");
    assert_eq!((made.uid(), made.permissions().mode() & 0o777), (owner, 0o600));
    fs::remove_file(&data).expect("removed");
    let restored = place.site.json(&["restore", "copy.redb"]);
    assert_eq!(restored, json!({ "file": "steward.redb", "replaced": null }));
    assert_eq!(place.names(), ["A"]);
}

#[test]
fn restore_replaces_the_data_file_and_keeps_the_old_one() {
    each_way(|place| {
        place.add("A");
        place.site.json(&["backup", "copy.redb"]);
        place.add("B");
        symlink("steward.redb", place.site.path("link.redb")).expect("a link");
        for data in ["steward.redb", "link.redb"] {
            let restored = place.site.json(&["restore", "copy.redb", "--data", data]);
            let members: Vec<_> = restored.as_object().expect("an object").keys().collect();
            assert_eq!(members, ["file", "replaced"]);
            assert_eq!(place.names(), ["A"]);
        }
        assert!(place.site.path("link.redb").is_symlink(), "the target of a link is replaced");
        let kept = place.site.names().into_iter().filter(|name| name.contains(".replaced-"));
        let kept: Vec<_> = kept.collect();
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert!(!place.site.names().iter().any(|name| name.contains("restoring")));
        place.add("C");
        assert_eq!(place.names(), ["A", "C"]);
        let newest = |name: &&String| {
            names(&place.site.serve(&["--data", name]), &place.dashboards, &place.key) == ["A", "B"]
        };
        assert_eq!(kept.iter().filter(newest).count(), 1, "the replaced file must be kept");
    });
}

#[test]
fn invalid_backup_is_not_restored() {
    each_way(|place| {
        place.add("A");
        place.site.json(&["backup", "copy.redb"]);
        place.site.json(&["backup", "bad.redb"]);
        corrupt(&place.site.path("bad.redb"));
        fs::write(place.site.path("text"), "not a data file, but long enough").expect("written");
        fs::create_dir(place.site.path("folder")).expect("a folder");
        let known = place.site.names();
        place.site.run(&["restore", "bad.redb"]).assert_failed("bad.redb");
        let init = ["init", "--email", OWNER, "--data", "new.redb", "--secrets-of"];
        for (name, problem) in [
            ("text", "text is not a Steward data file"),
            ("missing", "missing does not exist"),
            ("folder", "folder is not a regular file"),
        ] {
            let told = format!("{problem}; name a file that `steward backup` wrote");
            place.site.run(&["restore", name]).assert_failed(&told);
            place.site.run(&[&init[..], &[name]].concat()).assert_failed(&told);
        }
        assert_eq!(place.site.names(), known);
        assert_eq!(place.names(), ["A"]);
        let copy = place.site.serve(&["--data", "copy.redb"]);
        place.site.run(&["restore", "copy.redb"]).assert_failed("in use");
        drop(copy);
    });
}

#[test]
fn backup_with_other_secrets_is_restored_only_without_a_running_server() {
    let (site, made) = DataFolder::with_workspace();
    let (stranger, theirs) = DataFolder::with_workspace();
    let path = |name: &str| site.path(name).display().to_string();
    let server = site.serve(&[]);
    site.json(&["backup", "rotated.redb"]);
    site.json(&["secrets", "rotate"]);
    site.json(&["backup", "own.redb"]);
    stranger.json(&["backup", &path("workspace.redb")]);
    let cell = DataFolder::empty();
    let own = path("own.redb");
    let of_own = ["--cell", "3", "--secrets-of", &own];
    cell.json(&[&["init", "--email", "b@x.example"], &of_own[..]].concat());
    cell.json(&["backup", &path("cell.redb")]);
    for (backup, why) in [
        ("workspace.redb", "the backup is of another workspace"),
        ("cell.redb", "the backup is of cell 3, not cell 0"),
        (
            "rotated.redb",
            "the backup has different secrets than the server, because they were rotated",
        ),
    ] {
        let told = format!("{why}; stop the server to restore it");
        site.run(&["restore", backup]).assert_failed(&told);
    }
    let opens = |server: &Server, made: &Value| {
        let key = made["api_key"].as_str().expect("a key");
        assert_eq!(server.get("/api/users/@me/", key).status, 200);
    };
    opens(&server, &made);
    site.json(&["restore", "own.redb"]);
    opens(&server, &made);
    server.stop();
    for (backup, made) in [("rotated.redb", &made), ("workspace.redb", &theirs)] {
        site.json(&["restore", backup]);
        let server = site.serve(&[]);
        opens(&server, made);
        server.stop();
    }
    site.json(&["restore", "cell.redb"]);
    site.serve(&["--cell", "3"]).stop();
    site.check();
}

/// Returns the names of the files in a folder.
fn files_in(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).expect("a folder").map(|one| one.expect("one").file_name());
    let mut names: Vec<_> = found.map(|name| name.into_string().expect("a name")).collect();
    names.sort();
    names
}

/// Waits until the folder has exactly these files.
async fn backups_are(folder: &Path, names: &[&str]) {
    eventually("the backups are there", || (files_in(folder) == names).then_some(())).await;
}

#[tokio::test]
async fn scheduled_backups_replace_only_older_ones_of_the_same_workspace() {
    let start = Timestamp::parse("2026-01-02T03:04:05Z").expect("a moment");
    let clock = ManualClock::at(start);
    let folder = tempfile::TempDir::new().expect("a folder");
    let into = folder.path().join("backups");
    let config = |keep: u32| {
        let mut config = Config::default();
        config.clock = Clock::Manual(clock.clone());
        config.backups.backup_dir = Some(into.clone());
        config.backups.backup_keep = keep;
        config
    };
    let wait = async |names: &[&str]| backups_are(&into, names).await;
    let name = |stamp: &str| format!("steward-{stamp}.redb");
    let other = Workspace::new().await;
    let workspace = Workspace::with(config(2)).await;
    let first = name("20260102T030405Z");
    wait(&[&first]).await;
    // A backup of another workspace, older than all others, and a damaged one.
    let (foreign, damaged) = (name("20250101T000000Z"), name("20250102T000000Z"));
    let to = into.join(&foreign);
    let backup = other.app.store().backup(to, record_registry(), Progress::silent());
    backup.await.expect("a backup");
    fs::write(into.join(&damaged), "damaged").expect("written");
    let notes = "notes.txt";
    fs::write(into.join(notes), "mine").expect("written");
    // Two backups while the clock stands four years ahead.
    let (ahead, next) = (name("20300102T030405Z"), name("20300102T090405Z"));
    clock.set(Timestamp::parse("2030-01-02T03:04:05Z").expect("a moment"));
    wait(&[notes, &foreign, &damaged, &first, &ahead]).await;
    clock.advance(Duration::from_hours(6));
    wait(&[notes, &foreign, &damaged, &ahead, &next]).await;
    // After it was set back, backups go on at once, and none of them is deleted before its time.
    clock.set(Timestamp::parse("2026-01-02T04:00:00Z").expect("a moment"));
    let [second, third, fourth] =
        ["20260102T040000Z", "20260102T100000Z", "20260102T160000Z"].map(name);
    wait(&[notes, &foreign, &damaged, &second, &ahead, &next]).await;
    clock.advance(Duration::from_hours(6));
    wait(&[notes, &foreign, &damaged, &second, &third, &ahead, &next]).await;
    clock.advance(Duration::from_hours(6));
    wait(&[notes, &foreign, &damaged, &third, &fourth, &ahead, &next]).await;
    workspace.assert_file_valid().await;
    // A start with a clock that is behind waits for none of them.
    clock.set(Timestamp::parse("2026-01-02T01:00:00Z").expect("a moment"));
    let workspace = workspace.reopened(config(2)).await;
    let behind = name("20260102T010000Z");
    wait(&[notes, &foreign, &damaged, &behind, &third, &fourth, &ahead, &next]).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn start_removes_what_interrupted_backups_left_but_nothing_that_another_server_writes() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let [cut, named, written] = ["20250101", "20250102", "20250103"]
        .map(|day| folder.path().join(format!("steward-{day}T000000Z.redb")));
    let beside = |backup: &Path, ending: &str| backup.with_extension(format!("redb.{ending}"));
    for backup in [&cut, &written] {
        fs::write(beside(backup, "creating"), "").expect("written");
    }
    for backup in [&cut, &named, &written] {
        fs::write(beside(backup, "lock"), "").expect("written");
    }
    let lock = fs::File::options().write(true).open(beside(&written, "lock")).expect("a lock");
    lock.try_lock().expect("locked");
    let mut config = Config::default();
    config.backups.backup_dir = Some(folder.path().to_owned());
    let workspace = Workspace::with(config).await;
    for (backup, ending, stays) in [
        (&cut, "creating", false),
        (&cut, "lock", false),
        (&named, "lock", false),
        (&written, "creating", true),
        (&written, "lock", true),
    ] {
        let path = beside(backup, ending);
        assert_eq!(path.exists(), stays, "{}", path.display());
    }
    workspace.assert_file_valid().await;
}

#[test]
fn new_workspace_waits_for_a_word_if_there_are_backups_of_another() {
    let place = TestSetup::new(false);
    let folder = place.site.path("backups");
    place.add("A");
    let serve = ["--backup-dir", "backups"];
    let server = place.site.serve(&serve);
    until("a backup is there", || {
        files_in(&folder).iter().any(|name| name.ends_with("Z.redb")).then_some(())
    });
    server.stop();
    // Backups of one second would have one name.
    let backup = folder.join("steward-20200101T000000Z.redb");
    fs::rename(folder.join(&files_in(&folder)[0]), &backup).expect("renamed");
    // As if the disk with the data was not mounted.
    fs::rename(place.site.data(), place.site.path("away")).expect("moved");
    let refused = place.site.try_serve(&serve).err().expect("it waits");
    let told = "steward.redb has no data, but there is a backup of another workspace";
    let line = refused.assert_failed(told);
    assert!(line.contains(&backup.file_name().expect("a name").display().to_string()), "{line}");
    assert!(!place.site.data().exists() && !place.site.path("steward.redb.first-key").exists());
    // The disk is back.
    fs::rename(place.site.path("away"), place.site.data()).expect("moved back");
    assert_eq!(place.names(), ["A"]);
    // An operator founds another workspace. Its backups leave the others alone.
    fs::remove_file(place.site.data()).expect("removed");
    place.site.json(&["init", "--email", "other@corp.example"]);
    let server = place.site.serve(&[&serve[..], &["--backup-keep", "1"]].concat());
    until("its backup is there", || (files_in(&folder).len() == 2).then_some(()));
    server.stop();
    place.site.json(&["restore", backup.to_str().expect("a path")]);
    assert_eq!(place.names(), ["A"]);
}

fn size(site: &DataFolder) -> u64 {
    fs::metadata(site.data()).expect("the file").len()
}

#[test]
fn compact_flag_compacts_a_mostly_unused_file_at_startup() {
    let Served { site, server, key, dashboards } = Served::with(&[]);
    // Write much data and delete it again.
    let filler = "x".repeat(30_000);
    let two = server.post("/api/organizations/", &key, &json!({ "name": "Two" })).ok();
    let project = &server.get("/api/projects/", &key).ok()["results"][1]["id"];
    let path = format!("/api/projects/{project}/dashboards/");
    let mut connection: Connection = server.connect();
    for number in 0..60 {
        let sent = json!({ "name": format!("D{number}"), "filters": { "long": filler } });
        let reply = connection.send("POST", &path, &key, Some(&sent)).expect("an answer");
        assert_eq!(reply.status, 201, "{}", reply.json());
    }
    server.post(&dashboards, &key, &json!({ "name": "kept" })).ok();
    let gone = format!("/api/organizations/{}/", two["id"].as_str().expect("an id"));
    assert_eq!(server.send("DELETE", &gone, &key, None).status, 204);
    until("the records of the organization are deleted", || {
        let run = site.run(&["export"]).ok();
        (!run.contains("\"D59\"") && !run.contains("\"table\":\"sweeps\"")).then_some(())
    });
    server.stop();
    let large = size(&site);

    // A closing server may cut free space off the end of the file, so another copy is served without the flag.
    let log = DataFolder::with_bytes(&fs::read(site.data()).expect("the file")).serve(&[]).stop();
    assert!(!log.contains("dead space") && !log.contains("is compacted"), "{log}");

    let server = site.serve(&["--compact-at-start"]);
    let small = size(&site);
    assert_eq!(server.dashboards(&dashboards, &key).len(), 1);
    let log = server.stop();
    assert!(log.contains("more than half of the data file is dead space; compacting it"), "{log}");
    assert!(log.contains("the data file is compacted"), "{log}");
    assert!(small < large / 2, "{small} of {large}");
    site.check();

    let mut again = site.steward(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    again.env("STEWARD_COMPACT_AT_START", "1");
    let log = Server::start(&mut again).expect("a server").stop();
    assert!(log.contains("little dead space and is not compacted"), "{log}");
    assert!(!log.contains("compacting it"), "{log}");
    let log = DataFolder::empty().serve(&["--compact-at-start"]).stop();
    assert!(!log.contains("dead space"), "a new file is not compacted: {log}");
}
