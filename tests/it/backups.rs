//! `backup`, `restore` and `compact`, on the real binary: with the data file free, and beside a server that
//! holds it.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::geteuid;
use serde_json::{Value, json};
use steward::config::Config;
use steward::store::Progress;
use steward::time::{Clock, ManualClock, Timestamp};
use tokio::sync::oneshot;

use crate::support::Workspace;
use crate::support::process::{Connection, Server, Site, until};

/// A workspace, and perhaps a server that holds it.
struct Place {
    server: Option<Server>,
    site: Site,
    key: String,
    project: Value,
}

impl Place {
    fn new(serving: bool) -> Self {
        let (site, made) = Site::made();
        let key = made["api_key"].as_str().expect("a key").to_owned();
        let server = serving.then(|| site.serve(&[]));
        Self { server, site, key, project: made["project_id"].clone() }
    }

    /// Does something with the server, or with one that is there for this alone.
    fn with<T>(&self, act: impl FnOnce(&Server) -> T) -> T {
        match &self.server {
            Some(server) => act(server),
            None => act(&self.site.serve(&[])),
        }
    }

    fn add(&self, name: &str) {
        let path = format!("/api/projects/{}/dashboards/", self.project);
        self.with(|server| server.post(&path, &self.key, &json!({ "name": name })).ok());
    }

    /// The names of the dashboards.
    fn names(&self) -> Vec<String> {
        self.with(|server| names(server, &self.project, &self.key))
    }
}

fn names(server: &Server, project: &Value, key: &str) -> Vec<String> {
    let mut names: Vec<_> =
        server.dashboards(project, key).into_iter().map(|(_, name)| name).collect();
    names.sort();
    names
}

fn each_way(test: impl Fn(&Place)) {
    for serving in [false, true] {
        let place = Place::new(serving);
        test(&place);
        place.site.check();
    }
}

/// Flips bits of the file at `path`, past its first pages.
fn corrupt(path: &Path) {
    let mut bytes = fs::read(path).expect("the file");
    bytes.iter_mut().skip(8192).step_by(97).for_each(|byte| *byte ^= 0x10);
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_backup_holds_what_was_there_and_tells_what_it_is() {
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
        assert_eq!(bits & 0o777, 0o600, "it is a credential");
        let copy = place.site.serve(&["--data", "copy.redb"]);
        assert_eq!(names(&copy, &place.project, &place.key), ["A"]);
        copy.stop();
        assert_eq!(place.site.json(&["check", "--data", "copy.redb"])["problem_count"], 0);
        assert_eq!(place.names(), ["A", "B"]);
    });
}

#[test]
fn a_backup_overwrites_nothing_and_leaves_nothing_where_it_cannot_be() {
    each_way(|place| {
        fs::write(place.site.path("there"), "mine").expect("written");
        let known = place.site.names();
        place.site.run(&["backup", "there"]).fails("there exists already and was left as it is");
        place.site.run(&["backup", "steward.redb"]).fails("exists already");
        place.site.run(&["backup", "nowhere/copy.redb"]).fails("cannot create nowhere/copy.redb");
        assert_eq!(fs::read_to_string(place.site.path("there")).expect("it"), "mine");
        assert_eq!(place.site.names(), known);
    });
}

#[test]
fn a_backup_of_what_is_damaged_is_refused_by_the_name_of_what_is() {
    let place = Place::new(false);
    place.add("A");
    corrupt(&place.site.path("steward.redb"));
    let run = place.site.run(&["backup", "copy.redb"]);
    run.fails("damaged");
    assert!(
        !place.site.path("copy.redb").exists() && !place.site.path("copy.redb.creating").exists()
    );
}

/// What was acknowledged to writers so far, by number.
#[derive(Default)]
struct Load {
    acknowledged: Mutex<Vec<u64>>,
    refused: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl Load {
    fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// Waits for as many acknowledged writes more.
    fn more(&self, number: usize) {
        let before = self.count();
        until("writes are acknowledged", || (self.count() >= before + number).then_some(()));
    }

    /// Creates dashboards until it is over; what is refused for a while is noted and tried again.
    fn write(&self, address: std::net::SocketAddr, place: &Place) {
        let path = format!("/api/projects/{}/dashboards/", place.project);
        let mut connection = Connection::open(address).expect("a connection");
        while !self.over.load(Ordering::Relaxed) {
            let sent = json!({ "name": "under load" });
            let Ok(reply) = connection.send("POST", &path, &place.key, Some(&sent)) else { return };
            match reply.status {
                201 => {
                    let id = reply.json()["id"].as_u64().expect("an id");
                    self.acknowledged.lock().unwrap().push(id);
                }
                503 => {
                    let after = reply.header("retry-after").unwrap_or_default().to_owned();
                    self.refused.lock().unwrap().push(after);
                }
                status => panic!("{status}: {}", reply.json()),
            }
        }
    }

    /// Runs `act` while several write.
    fn under(place: &Place, act: impl FnOnce(&Self)) -> Self {
        let load = Self::default();
        let address = place.server.as_ref().expect("a server").address;
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| load.write(address, place));
            }
            load.more(20);
            act(&load);
            load.over.store(true, Ordering::Relaxed);
        });
        load
    }
}

#[test]
fn a_backup_under_load_is_one_moment_of_it() {
    let place = Place::new(true);
    let mut known = Vec::new();
    Load::under(&place, |load| {
        for name in ["a.redb", "b.redb", "c.redb"] {
            known.push((name, load.acknowledged.lock().unwrap().clone()));
            place.site.json(&["backup", name]);
            load.more(20);
        }
    });
    for (name, before) in known {
        let copy = place.site.serve(&["--data", name]);
        let mut found: Vec<_> =
            copy.dashboards(&place.project, &place.key).into_iter().map(|(id, _)| id).collect();
        found.sort_unstable();
        assert!(before.iter().all(|id| found.binary_search(id).is_ok()), "{name} lost something");
        assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>(), "{name} is no moment");
        copy.stop();
        assert_eq!(place.site.json(&["check", "--data", name])["problem_count"], 0);
    }
    place.site.check();
}

#[test]
fn of_two_backups_into_one_file_the_second_is_refused() {
    each_way(|place| {
        let lock = fs::File::create(place.site.path("copy.redb.lock")).expect("a lock");
        lock.lock().expect("another backup is being made");
        place.site.run(&["backup", "copy.redb"]).fails("copy.redb is in use by another steward");
        drop(lock);
        place.site.json(&["backup", "copy.redb"]);
        assert_eq!(place.site.json(&["check", "--data", "copy.redb"])["problem_count"], 0);
    });
}

/// Where a backup goes that is not taken.
struct Untaken {
    begun: Option<oneshot::Sender<()>>,
    taken: mpsc::Receiver<()>,
}

impl io::Write for Untaken {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(begun) = self.begun.take() {
            begun.send(()).expect("somebody waits");
            self.taken.recv().expect("it is taken in the end");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_compaction_takes_the_file_from_no_backup_and_holds_nobody_up_for_one() {
    let workspace = Workspace::new().await;
    let store = workspace.app.store().clone();
    let ((begun, begins), (take, taken)) = (oneshot::channel(), mpsc::channel());
    let out = Untaken { begun: Some(begun), taken };
    let stream = tokio::spawn({
        let store = store.clone();
        async move { store.stream(out).await }
    });
    begins.await.expect("the backup begins");
    let refused = store.compact(&Progress::unheard()).await.expect_err("a backup is under way");
    let why = "a backup, an export, a check or a scrub is under way; compact when it is done";
    assert_eq!((refused.status(), refused.to_string().as_str()), (400, why));
    store.write(|_| Ok(())).await.expect("writes go on");
    take.send(()).expect("the backup waits");
    stream.await.expect("no panic").expect("all was sent");
    store.compact(&Progress::unheard()).await.expect("compacted");
    workspace.check().await;
}

#[test]
fn a_restored_file_belongs_to_whom_the_one_in_its_place_belonged_to() {
    let place = Place::new(false);
    place.site.json(&["backup", "copy.redb"]);
    let (data, stranger) = (place.site.path("steward.redb"), 65_534);
    // Only root can give a file away; anybody's own stays their own.
    let owner =
        chown(&data, Some(stranger), Some(stranger)).map_or(geteuid().as_raw(), |()| stranger);
    place.site.json(&["restore", "copy.redb"]);
    let made = data.metadata().expect("the file");
    assert_eq!((made.uid(), made.permissions().mode() & 0o777), (owner, 0o600));
}

#[test]
fn a_restore_through_a_link_takes_the_place_of_the_file_behind_it() {
    each_way(|place| {
        place.add("A");
        place.site.json(&["backup", "copy.redb"]);
        place.add("B");
        symlink("steward.redb", place.site.path("link.redb")).expect("a link");
        place.site.json(&["restore", "copy.redb", "--data", "link.redb"]);
        assert!(place.site.path("link.redb").is_symlink());
        assert_eq!(place.names(), ["A"]);
    });
}

#[test]
fn a_restore_takes_the_files_place_and_keeps_what_was_there() {
    each_way(|place| {
        place.add("A");
        place.site.json(&["backup", "copy.redb"]);
        place.add("B");
        for _ in 0..2 {
            let restored = place.site.json(&["restore", "copy.redb"]);
            let members: Vec<_> = restored.as_object().expect("an object").keys().collect();
            assert_eq!(members, ["file", "replaced"]);
            assert_eq!(place.names(), ["A"]);
        }
        let kept = place.site.names().into_iter().filter(|name| name.contains(".replaced-"));
        let kept: Vec<_> = kept.collect();
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert!(!place.site.names().iter().any(|name| name.contains("restoring")));
        place.add("C");
        assert_eq!(place.names(), ["A", "C"]);
        let newest = |name: &&String| {
            let server = place.site.serve(&["--data", name]);
            names(&server, &place.project, &place.key) == ["A", "B"]
        };
        assert_eq!(kept.iter().filter(newest).count(), 1, "what was there is kept");
    });
}

#[test]
fn what_is_no_sound_backup_is_not_restored() {
    each_way(|place| {
        place.add("A");
        place.site.json(&["backup", "copy.redb"]);
        place.site.json(&["backup", "bad.redb"]);
        corrupt(&place.site.path("bad.redb"));
        fs::write(place.site.path("text"), "no data file, though long enough").expect("written");
        let known = place.site.names();
        place.site.run(&["restore", "bad.redb"]).fails("bad.redb");
        place.site.run(&["restore", "text"]).fails("text is not a Steward data file");
        place.site.run(&["restore", "missing"]).fails("missing does not exist");
        assert_eq!(place.site.names(), known);
        assert_eq!(place.names(), ["A"]);
        let copy = place.site.serve(&["--data", "copy.redb"]);
        place.site.run(&["restore", "copy.redb"]).fails("in use");
        drop(copy);
    });
}

#[test]
fn another_workspace_is_restored_only_while_none_is_served() {
    let (place, other) = (Place::new(true), Place::new(false));
    other.add("Theirs");
    let backup = place.site.path("other.redb").display().to_string();
    other.site.json(&["backup", &backup]);
    place.add("A");
    let why = "the backup is of another workspace; stop the server to restore it";
    place.site.run(&["restore", "other.redb"]).fails(why);
    assert_eq!(place.names(), ["A"]);
    let Place { server, site, .. } = place;
    server.expect("a server").stop();
    site.json(&["restore", "other.redb"]);
    let server = site.serve(&[]);
    assert_eq!(names(&server, &other.project, &other.key), ["Theirs"]);
}

#[test]
fn a_restore_needs_no_data_file() {
    let place = Place::new(false);
    place.add("A");
    place.site.json(&["backup", "copy.redb"]);
    fs::remove_file(place.site.path("steward.redb")).expect("removed");
    let restored = place.site.json(&["restore", "copy.redb"]);
    assert_eq!(restored, json!({ "file": "steward.redb", "replaced": null }));
    assert_eq!(place.names(), ["A"]);
}

#[test]
fn dead_space_is_given_back_and_whoever_writes_meanwhile_is_told_to_come_again() {
    let place = Place::new(true);
    let load = Load::under(&place, |load| {
        for _ in 0..3 {
            let done = place.site.json(&["compact"]);
            assert!(done["bytes"].as_u64() <= done["bytes_before"].as_u64(), "{done}");
            load.more(20);
        }
    });
    let refused = load.refused.lock().unwrap();
    assert!(refused.iter().all(|after| after == "1"), "{refused:?}");
    let server = place.server.as_ref().expect("a server");
    let found: Vec<_> =
        server.dashboards(&place.project, &place.key).into_iter().map(|(id, _)| id).collect();
    let acknowledged = load.acknowledged.lock().unwrap();
    assert!(acknowledged.iter().all(|id| found.contains(id)), "something is lost");
    place.site.check();
}

#[test]
fn a_free_file_is_compacted_too() {
    let place = Place::new(false);
    let done = place.site.json(&["compact"]);
    let size = fs::metadata(place.site.path("steward.redb")).expect("the file").len();
    let before = done["bytes_before"].as_u64().expect("a number");
    assert!(done["bytes"].as_u64().expect("a number") < before && size < before, "{done}");
    place.site.check();
}

#[tokio::test]
async fn the_server_makes_backups_by_itself_and_removes_the_oldest() {
    let start = Timestamp::parse("2026-01-02T03:04:05Z").expect("a moment");
    let clock = ManualClock::at(start);
    let folder = tempfile::TempDir::new().expect("a folder");
    let into = folder.path().join("backups");
    let mut config = Config::default();
    config.clock = Clock::Manual(clock.clone());
    config.backups.backup_dir = Some(into.clone());
    config.backups.backup_keep = 2;
    let workspace = Workspace::with(config).await;
    let there = || {
        let found = fs::read_dir(&into).expect("a folder").map(|one| one.expect("one").file_name());
        let mut names: Vec<_> = found.map(|name| name.into_string().expect("a name")).collect();
        names.sort();
        names
    };
    let wait = async |names: &[&str]| {
        while there() != names {
            tokio::task::yield_now().await;
        }
    };
    let [first, second, third] =
        ["03", "09", "15"].map(|hour| format!("steward-20260102T{hour}0405Z.redb"));
    wait(&[&first]).await;
    fs::write(into.join("notes.txt"), "mine").expect("written");
    clock.advance(Duration::from_hours(6));
    wait(&["notes.txt", &first, &second]).await;
    clock.advance(Duration::from_hours(6));
    wait(&["notes.txt", &second, &third]).await;
    workspace.check().await;
}
