//! Acknowledged writes survive SIGKILL, and a stop signal lets requests finish.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::process::{Connection, DataFolder, Server, until};

const ROUNDS: usize = 20;
const WRITERS: usize = 8;

#[test]
fn acknowledged_writes_survive_twenty_kills_under_concurrent_writers() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().unwrap();
    let project = &made["project_id"];
    let mut acknowledged: HashMap<u64, String> = HashMap::new();
    for round in 0..ROUNDS {
        let server = site.serve(&[]);
        let new = acknowledged_until_killed(server, project, key, round);
        for (id, name) in new {
            let twice = acknowledged.insert(id, name);
            assert_eq!(twice, None, "the id {id} was assigned twice");
        }
        site.check();
        let server = site.serve(&[]);
        let found: HashMap<_, _> = server.dashboards(project, key).into_iter().collect();
        let lost: Vec<_> =
            acknowledged.iter().filter(|(id, name)| found.get(id) != Some(name)).collect();
        assert!(lost.is_empty(), "round {round} lost {lost:?}");
        server.kill();
    }
}

/// Creates dashboards on several connections and kills the server meanwhile. Returns the acknowledged
/// dashboards.
fn acknowledged_until_killed(
    server: Server,
    project: &Value,
    key: &str,
    round: usize,
) -> Vec<(u64, String)> {
    let path = format!("/api/projects/{project}/dashboards/");
    let (address, enough) = (server.address, 1 + round * 3);
    let acknowledged = Mutex::new(Vec::new());
    let count = AtomicUsize::new(0);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (path, acknowledged, count) = (&path, &acknowledged, &count);
            scope.spawn(move || {
                let Ok(mut connection) = Connection::open(address) else { return };
                for number in 0.. {
                    let name = format!("round {round}, writer {writer}, number {number}");
                    let body = json!({ "name": name, "description": name });
                    let Ok(reply) = connection.send("POST", path, key, Some(&body)) else { return };
                    assert_eq!(reply.status, 201, "{}", reply.json());
                    let id = reply.json()["id"].as_u64().unwrap();
                    acknowledged.lock().unwrap().push((id, name));
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        until("writes are acknowledged", || {
            (count.load(Ordering::Relaxed) >= enough).then_some(())
        });
        server.kill();
    });
    acknowledged.into_inner().unwrap()
}

#[test]
fn stop_signal_finishes_requests_and_closes_the_file_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let (site, made) = DataFolder::with_workspace();
        let key = made["api_key"].as_str().unwrap();
        let project = &made["project_id"];
        let server = site.serve(&[]);
        let mut idle = server.connect();
        idle.send("GET", "/_livez", "", None).unwrap();
        let mut slow = server.connect();
        let body = json!({ "name": "Late" }).to_string();
        slow.begin(&format!("/api/projects/{project}/dashboards/"), key, body.len());
        server.signal(signal);
        until("the server refuses connections", || Connection::open(server.address).err());
        assert!(idle.is_closed(), "an idle connection must be closed at once");
        slow.write(body).unwrap();
        let reply = slow.reply().unwrap();
        assert_eq!(reply.status, 201, "{}", reply.json());
        let (code, log) = server.wait();
        assert_eq!(code, Some(0), "{log}");
        assert!(is_closed_clean(&site), "redb must have nothing to repair");
        assert!(!site.path("steward.redb.sock").exists());
        site.check();
        let server = site.serve(&[]);
        let name = reply.json()["name"].as_str().unwrap().to_owned();
        let id = reply.json()["id"].as_u64().unwrap();
        assert_eq!(server.dashboards(project, key), [(id, name)]);
    }
}

#[test]
fn stop_signal_right_after_startup_is_handled() {
    let (site, _) = DataFolder::with_workspace();
    for _ in 0..5 {
        site.serve(&[]).stop();
        assert!(is_closed_clean(&site));
    }
}

#[test]
fn requests_longer_than_the_grace_period_are_aborted_and_the_file_closed() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().unwrap();
    let server = site.serve(&["--grace", "200ms"]);
    let mut slow = server.connect();
    slow.begin(&format!("/api/projects/{}/dashboards/", made["project_id"]), key, 100);
    server.signal(Signal::TERM);
    let (code, log) = server.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("still busy at the end of the grace period"), "{log}");
    assert!(slow.reply().is_err());
    assert!(is_closed_clean(&site));
}

/// redb opens a file read-only only if nothing needs repair.
fn is_closed_clean(site: &DataFolder) -> bool {
    redb::ReadOnlyDatabase::open(site.data()).is_ok()
}

#[test]
fn request_repeated_after_a_kill_creates_no_second_object() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().unwrap();
    let path = format!("/api/projects/{}/dashboards/", made["project_id"]);
    for round in 0..5 {
        let server = site.serve(&[]);
        let mut connection = server.connect();
        let once = format!("round {round}");
        let body = json!({ "name": once }).to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\nidempotency-key: {once}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write(&request).unwrap();
        // In half of the rounds the server is killed before the response arrives, so the outcome is unknown.
        let first = (round % 2 == 0).then(|| connection.reply().unwrap().json());
        server.kill();
        let server = site.serve(&[]);
        let mut connection = server.connect();
        connection.write(&request).unwrap();
        let again = connection.reply().unwrap();
        assert_eq!(again.status, 201);
        if let Some(first) = first {
            assert_eq!((again.header("idempotent-replayed"), again.json()), (Some("true"), first));
        }
        let names = server.dashboards(&made["project_id"], key);
        assert_eq!(names.iter().filter(|(_, name)| *name == once).count(), 1, "{names:?}");
        server.kill();
        site.check();
    }
}
