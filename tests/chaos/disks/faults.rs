//! Input/output errors while the service runs: requests fail with the standard error body, and the service
//! recovers by itself.

use super::Acknowledged;
use crate::support::process::{DataFolder, Server, until};

/// Makes the file of a server unwritable, and writable again if it `heals`, before the server ends.
fn ends_with_everything(heals: bool, end: impl FnOnce(Server)) {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let path = format!("/api/projects/{}/dashboards/", made["project_id"]);
    let server = site.serve_limited(|_| {});
    let mut acknowledged = Acknowledged::default();
    let mut tried = 0;
    let mut create = || {
        tried += 1;
        acknowledged.create(&server, (&path, key), &format!("Dashboard {tried}"))
    };
    assert_eq!(create(), 201);
    server.limit_files(Some(0));
    for _ in 0..5 {
        assert_eq!(create(), 503);
        let read = server.get(&path, key);
        if read.status != 200 {
            read.assert_error(503, "server_error", "unavailable");
        }
        assert_eq!(server.get("/_livez", "").status, 200);
        server.get("/_readyz", "").assert_error(503, "server_error", "unavailable");
    }
    if heals {
        server.limit_files(None);
        until("the service accepts writes again", || (create() == 201).then_some(()));
        until("the service is ready", || (server.get("/_readyz", "").status == 200).then_some(()));
        for _ in 0..10 {
            assert_eq!(create(), 201);
        }
        acknowledged.assert_shown(&server.dashboards(&path, key));
        site.check();
    }
    end(server);
    site.check();
    acknowledged.assert_shown(&site.serve(&[]).dashboards(&path, key));
}

#[test]
fn unwritable_file_rejects_writes_and_loses_nothing() {
    ends_with_everything(true, |server| drop(server.stop()));
}

#[test]
fn stop_or_kill_during_a_fault_loses_nothing() {
    ends_with_everything(false, |server| drop(server.stop()));
    ends_with_everything(false, Server::kill);
}
