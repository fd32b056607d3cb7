//! Input/output errors while the service runs: requests fail with the standard error body, and the service
//! recovers by itself.

use serde_json::Value;

use super::Acknowledged;
use crate::support::process::{DataFolder, Server, until};

/// A server whose data file can be made unwritable.
struct Faulty {
    site: DataFolder,
    made: Value,
    server: Server,
    acknowledged: Acknowledged,
    tried: usize,
}

impl Faulty {
    fn new() -> Self {
        let (site, made) = DataFolder::with_workspace();
        let server = site.serve_limited(|_| {});
        Self { site, made, server, acknowledged: Acknowledged::default(), tried: 0 }
    }

    fn key(&self) -> &str {
        self.made["api_key"].as_str().unwrap()
    }

    fn path(&self) -> String {
        format!("/api/projects/{}/dashboards/", self.made["project_id"])
    }

    fn create(&mut self) -> u16 {
        self.tried += 1;
        let (path, key) = (self.path(), self.key().to_owned());
        let name = format!("Dashboard {}", self.tried);
        self.acknowledged.create(&self.server, (&path, &key), &name)
    }

    /// Reads the list, which must return 200 or 503. Returns whether the service reports that it is ready.
    fn read(&self) -> bool {
        let read = self.server.get(&self.path(), self.key());
        if read.status != 200 {
            read.assert_error(503, "server_error", "unavailable");
        }
        assert_eq!(self.server.get("/_livez", "").status, 200);
        let ready = self.server.get("/_readyz", "");
        if ready.status != 200 {
            ready.assert_error(503, "server_error", "unavailable");
        }
        ready.status == 200
    }

    /// Makes the file writable again and waits until the service accepts writes.
    fn heal(&mut self) {
        self.server.limit_files(None);
        until("the service accepts writes again", || (self.create() == 201).then_some(()));
        until("the service is ready", || self.read().then_some(()));
        for _ in 0..10 {
            assert_eq!(self.create(), 201);
        }
        self.has_everything();
        self.site.check();
    }

    fn has_everything(&self) {
        let found = self.server.dashboards(&self.made["project_id"], self.key());
        self.acknowledged.assert_shown(&found);
    }

    /// Stops the server with `end` and asserts that a new one has all acknowledged dashboards.
    fn restart(self, end: impl FnOnce(Server)) {
        end(self.server);
        self.site.check();
        let server = self.site.serve(&[]);
        Self { server, ..self }.has_everything();
    }
}

#[test]
fn unwritable_file_rejects_writes_and_loses_nothing() {
    let mut faulty = Faulty::new();
    assert_eq!(faulty.create(), 201);
    faulty.server.limit_files(Some(0));
    for _ in 0..5 {
        assert_eq!(faulty.create(), 503);
        assert!(!faulty.read(), "the service must report that it is not ready");
    }
    faulty.heal();
    faulty.restart(|server| drop(server.stop()));
}

#[test]
fn stop_or_kill_during_a_fault_loses_nothing() {
    let ends: [fn(Server); 2] = [|server| drop(server.stop()), Server::kill];
    for end in ends {
        let mut faulty = Faulty::new();
        assert_eq!(faulty.create(), 201);
        faulty.server.limit_files(Some(0));
        assert_eq!(faulty.create(), 503);
        faulty.restart(end);
    }
}
