//! A file system that is really full, and one that is really read-only, under the real binary.
//!
//! The server gets a small file system of its own: in a mount namespace, and where the tests are not root's in a
//! user namespace too.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::support::process::{Run, STEWARD, Server, Site, cleared, until};

/// Runs this in a shell in a mount namespace of its own. `$0` is the binary, `$1` the folder to mount upon.
fn in_namespace(site: &Site, script: &str) -> Command {
    let mut command = cleared("unshare");
    if !geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "sh", "-c", script, STEWARD]).arg(site.path("disk"));
    command
}

/// Whether there can be such namespaces. Where the tests are root's there have to be.
fn possible(site: &Site) -> bool {
    fs::create_dir(site.path("disk")).expect("a folder");
    let tried = Run::of(&mut in_namespace(site, "mount -t tmpfs -o size=1m none \"$1\""));
    if tried.code == Some(0) {
        return true;
    }
    eprintln!("NOT TESTED: no file system can be mounted here: {tried:?}");
    assert!(!geteuid().is_root(), "root can mount a file system: {tried:?}");
    false
}

/// A server on a small file system.
struct Small {
    server: Server,
    site: Site,
}

impl Small {
    /// Keeps this much of it free.
    fn keeping(reserve: &str) -> Option<Self> {
        let site = Site::empty();
        if !possible(&site) {
            return None;
        }
        let script = format!(
            "mount -t tmpfs -o size=6m none \"$1\" && cd \"$1\" && exec \"$0\" serve \
             --listen 127.0.0.1:0 --json --data \"$1/steward.redb\" --disk-reserve {reserve}"
        );
        let server = Server::start(&mut in_namespace(&site, &script)).expect("it serves");
        Some(Self { server, site })
    }

    /// Where something on that file system is reached from outside.
    fn path(&self, name: &str) -> PathBuf {
        let disk = self.site.path("disk");
        let root = format!("/proc/{}/root", self.server.pid().as_raw_nonzero());
        PathBuf::from(root).join(disk.strip_prefix("/").expect("an absolute path")).join(name)
    }
}

#[test]
fn a_full_file_system_refuses_writes_for_as_long_as_it_is_full_and_loses_nothing() {
    let Some(small) = Small::keeping("0") else { return };
    let server = &small.server;
    let key = fs::read_to_string(small.path("steward.redb.first-key")).expect("a key");
    let (key, project) = (key.trim_end(), &server.greeted()["project_id"]);
    let path = format!("/api/projects/{project}/dashboards/");
    let mut acknowledged: Vec<(u64, String)> = Vec::new();
    let mut create = |number: usize| {
        let name = format!("Dashboard {number}");
        let body = json!({ "name": name, "description": "x".repeat(16_000) });
        let reply = server.post(&path, key, &body);
        if reply.status == 201 {
            acknowledged.push((reply.json()["id"].as_u64().expect("an id"), name));
        } else {
            reply.refuses(503, "server_error", "unavailable");
        }
        reply.status
    };
    assert_eq!(create(0), 201);
    for round in 0..2 {
        // All that is left is taken by somebody else.
        let other = small.path("filler");
        let filled = fs::write(&other, vec![1; 8 << 20]);
        assert!(filled.is_err_and(|error| error.kind() == std::io::ErrorKind::StorageFull));
        let refused = (1..300).find(|number| create(round * 1000 + number) == 503);
        assert!(refused.is_some(), "the file system is full");
        let read = (0..40).filter(|number| {
            create(round * 1000 + 400 + number);
            server.get(&path, key).status == 200
        });
        assert!(read.count() >= 30, "who reads is hardly disturbed by who writes");
        fs::remove_file(&other).expect("there is room again");
        until("the service takes writes again", || {
            (create(round * 1000 + 999) == 201).then_some(())
        });
    }
    let found = server.dashboards(project, key);
    let lost: Vec<_> = acknowledged.iter().filter(|one| !found.contains(one)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let data = small.path("steward.redb").into_os_string().into_string().expect("text");
    assert_eq!(small.site.json(&["check", "--data", &data])["problem_count"], 0);
    let log = small.server.stop();
    assert!(log.contains("the data file failed"), "{log}");
}

#[test]
fn near_a_full_file_system_what_adds_is_refused_and_what_removes_goes_on() {
    let Some(small) = Small::keeping("1MiB") else { return };
    let server = &small.server;
    let key = fs::read_to_string(small.path("steward.redb.first-key")).expect("a key");
    let (key, project) = (key.trim_end(), &server.greeted()["project_id"]);
    let path = format!("/api/projects/{project}/dashboards/");
    let body = json!({ "name": "A", "description": "x".repeat(16_000) });
    let first = server.post(&path, key, &body).ok();
    let mut created = 1;
    let refused = loop {
        let reply = server.post(&path, key, &body);
        if reply.status != 201 {
            break reply;
        }
        created += 1;
        assert!(created < 600, "600 times 16 KB are in 5 MiB");
    };
    refused.refuses(503, "server_error", "unavailable");
    let one = format!("{path}{}/", first["id"]);
    let deleted = server.send("PATCH", &one, key, Some(&json!({ "deleted": true })));
    assert_eq!(deleted.status, 200);
    let log = small.server.stop();
    assert!(log.contains("the disk is nearly full"), "{log}");
    assert!(!log.contains("the data file failed"), "it was never full: {log}");
}

#[test]
fn a_read_only_file_system_is_refused_in_one_line_and_nothing_is_changed() {
    let (site, _) = Site::made();
    if !possible(&site) {
        return;
    }
    let before = fs::read(site.data()).expect("the file");
    let script = "mount --bind \"$1/..\" \"$1\" && mount -o remount,bind,ro \"$1\" && \
                  exec \"$0\" serve --listen 127.0.0.1:0 --json --data \"$1/steward.redb\"";
    let refused = Server::start(&mut in_namespace(&site, script)).err().expect("a refusal");
    refused.fails("Read-only file system");
    assert!(fs::read(site.data()).expect("the file") == before);
    site.serve(&[]).stop();
}

#[test]
fn of_two_servers_on_one_file_the_second_is_refused_and_the_first_goes_on() {
    let (site, made) = Site::made();
    let (key, project) = (made["api_key"].as_str().expect("a key"), &made["project_id"]);
    let path = format!("/api/projects/{project}/dashboards/");
    let first = site.serve(&[]);
    let before = first.post(&path, key, &json!({ "name": "before" })).ok();
    for _ in 0..3 {
        let refused = site.try_serve(&[]).err().expect("a refusal");
        refused.fails("steward.redb is in use by another steward process");
    }
    let after = first.post(&path, key, &json!({ "name": "after" })).ok();
    let named =
        |made: &Value| (made["id"].as_u64().unwrap(), made["name"].as_str().unwrap().to_owned());
    assert_eq!(first.dashboards(project, key), [named(&after), named(&before)]);
    first.stop();
    site.check();
}
