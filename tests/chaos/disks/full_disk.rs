//! The real binary on a full file system and on a read-only one.
//!
//! The server gets a small file system in a mount namespace of its own. If the tests do not run as root, the
//! namespace is inside a user namespace.

use std::process::Command;

use rustix::process::geteuid;

use super::Acknowledged;
use crate::prelude::*;
use crate::support::process::{STEWARD, tool};

/// Runs a script in a shell in its own mount namespace. `$0` is the binary, `$1` the mount point.
fn in_namespace(site: &DataFolder, script: &str) -> Command {
    let mut command = tool("unshare", "util-linux");
    if !geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "sh", "-c", script, STEWARD]).arg(site.path("disk"));
    command
}

/// Whether such namespaces are available. As root they must be.
fn possible(site: &DataFolder) -> bool {
    fs::create_dir(site.path("disk")).expect("a folder");
    let tried =
        CommandOutput::new(&mut in_namespace(site, "mount -t tmpfs -o size=1m none \"$1\""));
    if tried.code == Some(0) {
        return true;
    }
    eprintln!("NOT TESTED: no file system can be mounted here: {tried:?}");
    assert!(!geteuid().is_root(), "root must be able to mount a file system: {tried:?}");
    false
}

/// Uses all remaining space of a file system for a file on it, as another program may.
pub fn fill_disk(filler: &Path) {
    let filled = fs::write(filler, vec![1; 8 << 20]);
    assert!(filled.is_err_and(|error| error.kind() == std::io::ErrorKind::StorageFull));
}

/// A server on a small file system.
pub struct Small {
    pub server: Server,
    site: DataFolder,
}

impl Small {
    /// Starts the server on these data with this disk reserve, if a file system can be mounted.
    pub fn serving(data: &str, reserve: &str) -> Option<Self> {
        let site = DataFolder::empty();
        if !possible(&site) {
            return None;
        }
        let script = format!(
            "mount -t tmpfs -o size=6m none \"$1\" && cd \"$1\" && exec \"$0\" serve \
             --listen 127.0.0.1:0 --json --data '{data}' --disk-reserve {reserve}"
        );
        let server = Server::start(&mut in_namespace(&site, &script)).expect("a server");
        Some(Self { server, site })
    }

    /// Returns the path, outside the namespace of the server, of a file on its file system.
    pub fn path(&self, name: &str) -> PathBuf {
        let disk = self.site.path("disk");
        let root = format!("/proc/{}/root", self.server.pid().as_raw_nonzero());
        PathBuf::from(root).join(disk.strip_prefix("/").expect("an absolute path")).join(name)
    }
}

#[test]
fn full_file_system_rejects_writes_while_full_and_loses_nothing() {
    let Some(small) = Small::serving("steward.redb", "0") else { return };
    let server = &small.server;
    let key = fs::read_to_string(small.path("steward.redb.first-key")).expect("a key");
    let (key, project) = (key.trim_end(), &server.startup_message()["project_id"]);
    let path = format!("/api/projects/{project}/dashboards/");
    let mut acknowledged = Acknowledged::default();
    let mut create =
        |number: usize| acknowledged.create(server, (&path, key), &format!("Dashboard {number}"));
    assert_eq!(create(0), 201);
    for round in 0..2 {
        let other = small.path("filler");
        fill_disk(&other);
        let refused = (1..300).find(|number| create(round * 1000 + number) == 503);
        assert!(refused.is_some(), "no write failed on the full file system");
        for number in 400..440 {
            create(round * 1000 + number);
            until("reads succeed", || (server.get(&path, key).status == 200).then_some(()));
        }
        fs::remove_file(&other).expect("the filler removed");
        until("the service accepts writes again", || {
            (create(round * 1000 + 999) == 201).then_some(())
        });
    }
    acknowledged.assert_shown(&server.dashboards(&path, key));
    let data = small.path("steward.redb").into_os_string().into_string().expect("text");
    assert_eq!(small.site.json(&["check", "--data", &data])["problem_count"], 0);
    let log = small.server.stop();
    assert!(log.contains("the data file failed"), "{log}");
}

#[test]
fn nearly_full_file_system_rejects_additions_and_allows_deletions() {
    let Some(small) = Small::serving("steward.redb", "1MiB") else { return };
    let server = &small.server;
    let key = fs::read_to_string(small.path("steward.redb.first-key")).expect("a key");
    let (key, project) = (key.trim_end(), &server.startup_message()["project_id"]);
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
        assert!(created < 600, "600 writes of 16 KB cannot fit in 5 MiB");
    };
    refused.assert_error(503, "server_error", "unavailable");
    let one = format!("{path}{}/", first["id"]);
    assert_eq!(server.send("PATCH", &one, key, Some(&json!({ "deleted": true }))).status, 200);
    let log = small.server.stop();
    assert!(log.contains("the disk is nearly full"), "{log}");
    assert!(!log.contains("the data file failed"), "the disk became full: {log}");
}

#[test]
fn read_only_file_system_is_rejected_with_one_line() {
    let (site, _) = DataFolder::with_workspace();
    if !possible(&site) {
        return;
    }
    let before = fs::read(site.data()).expect("the file");
    let script = "mount --bind \"$1/..\" \"$1\" && mount -o remount,bind,ro \"$1\" && \
                  exec \"$0\" serve --listen 127.0.0.1:0 --json --data \"$1/steward.redb\"";
    let refused = Server::start(&mut in_namespace(&site, script)).err().expect("a refusal");
    refused.assert_failed("Read-only file system");
    assert!(fs::read(site.data()).expect("the file") == before);
    site.serve(&[]).stop();
}
