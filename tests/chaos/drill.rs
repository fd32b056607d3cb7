//! A disaster drill with the real binary: serve under load, back up, kill, damage the file, restore, and
//! serve again. Also a series of kills at random moments.
//!
//! `KILLS` sets the number of kills in the series.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::sizes::{seed, size};
use crate::support::process::{Connection, DataFolder, Server, all_rows, until};
use crate::support::sim::TestRng;

const WRITERS: usize = 4;
const KILLS: u64 = 12;
/// How many parts of the file are overwritten.
const PIECES: usize = 64;

/// Records of the load by path, each with its expected content.
type AcknowledgedNames = BTreeMap<String, Value>;

/// The acknowledged state of each record, and the changes whose response never arrived.
#[derive(Default)]
struct AcknowledgedWrites {
    kept: Mutex<AcknowledgedNames>,
    /// The content that a change under way would give a record, by the record's path.
    under_way: Mutex<BTreeMap<String, Value>>,
    over: AtomicBool,
    seed: u64,
}

/// The paths of the workspace.
struct WorkspacePaths {
    key: String,
    dashboards: String,
    domains: String,
    invites: String,
}

impl WorkspacePaths {
    fn of(made: &Value) -> Self {
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        let organization = text("organization_id");
        Self {
            key: text("api_key"),
            dashboards: format!("/api/projects/{}/dashboards/", made["project_id"]),
            domains: format!("/api/organizations/{organization}/domains/"),
            invites: format!("/api/organizations/{organization}/invites/"),
        }
    }
}

impl AcknowledgedWrites {
    fn count(&self) -> usize {
        self.kept.lock().unwrap().len()
    }

    fn more(&self, number: usize) {
        let before = self.count();
        until("writes are acknowledged", || (self.count() >= before + number).then_some(()));
    }

    /// Sends one write. Returns `None` if the server was killed before it responded, or if it refused the write at the end.
    fn send(
        &self,
        connection: &mut Connection,
        (method, path): (&str, &str),
        place: &WorkspacePaths,
        sent: &Value,
    ) -> Option<Value> {
        loop {
            let reply = connection.send(method, path, &place.key, Some(sent)).ok()?;
            match reply.status {
                200 | 201 => return Some(reply.json()),
                503 if self.over.load(Ordering::Relaxed) => return None,
                503 => {}
                _ => panic!("{}: {}", reply.status, reply.json()),
            }
        }
    }

    /// Writes until the load is over or the server is gone.
    fn write(&self, address: SocketAddr, place: &WorkspacePaths, writer: usize, round: u64) {
        let Ok(mut connection) = Connection::open(address) else { return };
        let mut dice = TestRng((self.seed << 32) + round * 1000 + writer as u64);
        let mut own: Vec<String> = Vec::new();
        for number in 0_u64.. {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let name = format!("r{round}w{writer}n{number}");
            // Both members get the same value, so that a difference shows a partial change.
            let both = json!({ "name": name, "description": name });
            let (method, path, sent) = match dice.below(8) {
                0..3 => ("POST", place.dashboards.clone(), both),
                3..6 if !own.is_empty() => ("PATCH", own[dice.below(own.len())].clone(), both),
                6 => {
                    ("POST", place.domains.clone(), json!({ "domain": format!("{name}.example") }))
                }
                _ => {
                    let sent = json!({ "target_email": format!("{name}@new.example"), "level": 8 });
                    ("POST", place.invites.clone(), sent)
                }
            };
            let is_change = method == "PATCH";
            if is_change {
                self.under_way.lock().unwrap().insert(path.clone(), sent.clone());
            }
            let done = self.send(&mut connection, (method, &path), place, &sent);
            let Some(body) = done else { return };
            let one = if is_change { path.clone() } else { path_of(&path, &body) };
            if is_change {
                self.under_way.lock().unwrap().remove(&path);
            } else if path == place.dashboards {
                own.push(one.clone());
            }
            self.kept.lock().unwrap().insert(one, sent);
        }
    }

    /// Runs `act` while several writers write. `act` stops the load or kills the server.
    fn under(&self, address: SocketAddr, place: &WorkspacePaths, round: u64, act: impl FnOnce()) {
        self.over.store(false, Ordering::Relaxed);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || self.write(address, place, writer, round));
            }
            act();
            self.over.store(true, Ordering::Relaxed);
        });
    }
}

/// Returns the path of an object in a list.
fn path_of(list: &str, row: &Value) -> String {
    let id = row["id"].as_str().map_or(row["id"].to_string(), str::to_owned);
    format!("{list}{id}/")
}

/// Returns everything that the service shows of the load, in the form of [`AcknowledgedNames`].
fn shown(server: &Server, place: &WorkspacePaths) -> AcknowledgedNames {
    let mut connection = server.connect();
    let mut all = AcknowledgedNames::new();
    let lists: [(&str, &[&str]); 3] = [
        (&place.dashboards, &["name", "description"]),
        (&place.domains, &["domain"]),
        (&place.invites, &["target_email", "level"]),
    ];
    for (list, fields) in lists {
        let get = |path: &str| connection.send("GET", path, &place.key, None).expect("a page").ok();
        let (rows, count) = all_rows(list, get);
        assert_eq!(count, rows.len() as u64, "{list} must count the rows that it shows");
        let sent = |row: &Value| -> Value {
            fields.iter().map(|name| ((*name).to_owned(), row[*name].clone())).collect()
        };
        all.extend(rows.iter().map(|row| (path_of(list, row), sent(row))));
    }
    all
}

/// Returns the records of `kept` that are not shown as expected. A record must have the state of its last
/// response, or the state of the change in `under_way`, whose response never arrived.
fn lost(
    kept: &AcknowledgedNames,
    under_way: &AcknowledgedNames,
    shown: &AcknowledgedNames,
) -> Vec<String> {
    let is_kept = |(path, value): &(&String, &Value)| {
        let found = shown.get(*path);
        found != Some(value) && (found.is_none() || found != under_way.get(*path))
    };
    kept.iter().filter(is_kept).map(|(path, value)| format!("{path} {value}")).collect()
}

/// Asserts that no record is partially changed: members that were written together have the same value.
fn none_is_half(server: &Server, place: &WorkspacePaths, shown: &AcknowledgedNames) {
    let mut connection = server.connect();
    for (path, value) in shown.iter().filter(|(path, _)| path.starts_with(&place.dashboards)) {
        assert_eq!(value["name"], value["description"], "{path} is partially changed");
        let one = connection.send("GET", path, &place.key, None).expect("an answer").ok();
        assert_eq!((&one["name"], &one["description"]), (&value["name"], &value["description"]));
    }
}

/// Overwrites parts of a file, after its first page.
fn damage(path: &Path, seed: u64) {
    let mut bytes = fs::read(path).expect("the file");
    let mut dice = TestRng(seed);
    for _ in 0..PIECES {
        let at = 4096 + dice.below(bytes.len() - 8192);
        bytes[at..at + 512].fill_with(|| dice.next().to_le_bytes()[0]);
    }
    fs::write(path, bytes).expect("written");
}

#[test]
fn restore_after_a_kill_and_damage_returns_all_writes_before_the_backup() {
    let (site, made) = DataFolder::with_workspace();
    let (place, load) = (WorkspacePaths::of(&made), AcknowledgedWrites::default());
    let server = site.serve(&[]);
    let mut before = AcknowledgedNames::new();
    let address = server.address;
    load.under(address, &place, 0, || {
        load.more(60);
        before = load.kept.lock().unwrap().clone();
        site.json(&["backup", "copy.redb"]);
        load.more(60);
        server.kill();
    });
    damage(&site.data(), seed());

    let run = site.run(&["check", "--json"]);
    assert!(run.code != Some(0) || !run.stdout.contains("\"problem_count\":0"), "{run:?}");
    if let Ok(server) = site.try_serve(&[]) {
        // The file may open. Then requests that read damaged values fail, and no response is wrong.
        let reply = server.get(&place.dashboards, &place.key);
        assert!([200, 401, 500, 503].contains(&reply.status), "{}", reply.status);
        drop(server);
    }

    let restored = site.json(&["restore", "copy.redb"]);
    assert!(restored["replaced"].is_string(), "the damaged file must be kept: {restored}");
    site.check();
    let server = site.serve(&[]);
    let found = shown(&server, &place);
    // A record that changed between `before` and the backup may have any state from that time.
    let missing: Vec<_> = before.keys().filter(|path| !found.contains_key(*path)).collect();
    assert!(missing.is_empty(), "lost {missing:?}");
    none_is_half(&server, &place, &found);
    let more = AcknowledgedWrites::default();
    more.under(server.address, &place, 1, || more.more(40));
    let found = shown(&server, &place);
    let lost = lost(&more.kept.into_inner().unwrap(), &AcknowledgedNames::new(), &found);
    assert!(lost.is_empty(), "after the restore {lost:?}");
    server.stop();
    site.check();
    println!(
        "{} acknowledged before the backup, {PIECES} parts overwritten, {} restored or added since",
        before.len(),
        found.len()
    );
}

#[test]
fn kills_at_random_moments_under_load_lose_no_acknowledged_write() {
    let kills = size("KILLS", KILLS);
    let (site, made) = DataFolder::with_workspace();
    let seed = seed();
    let load = AcknowledgedWrites { seed, ..AcknowledgedWrites::default() };
    let (place, mut dice) = (WorkspacePaths::of(&made), TestRng(seed));
    for round in 0..kills {
        let server = site.serve(&[]);
        let found = shown(&server, &place);
        let under_way = std::mem::take(&mut *load.under_way.lock().unwrap());
        let missing = lost(&load.kept.lock().unwrap(), &under_way, &found);
        assert!(missing.is_empty(), "before round {round}: {missing:?}");
        none_is_half(&server, &place, &found);
        // From now on the found state is the expected one, including changes whose response never arrived.
        *load.kept.lock().unwrap() = found;
        let address = server.address;
        load.under(address, &place, round, || {
            // Vary the moment of the kill.
            load.more(1 + dice.below(20));
            server.kill();
        });
    }
    site.check();
    let server = site.serve(&[]);
    let found = shown(&server, &place);
    let missing = lost(&load.kept.lock().unwrap(), &load.under_way.lock().unwrap(), &found);
    assert!(missing.is_empty(), "after the last: {missing:?}");
    none_is_half(&server, &place, &found);
    println!("{kills} kills, {} records", found.len());
}
