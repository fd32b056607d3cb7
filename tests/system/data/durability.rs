//! A stop signal lets requests finish.

use crate::prelude::*;

#[test]
fn stop_signal_finishes_requests_and_closes_the_file_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let Served { site, server, key, dashboards } = Served::with(&[]);
        let mut idle = server.connect();
        idle.send("GET", "/_livez", "", None).unwrap();
        let mut slow = server.connect();
        let body = json!({ "name": "Late" }).to_string();
        slow.begin(&dashboards, &key, body.len());
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
        assert_eq!(server.dashboards(&dashboards, &key), [(id, name)]);
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
    let Served { site, server, key, dashboards } = Served::with(&["--grace", "200ms"]);
    let mut slow = server.connect();
    slow.begin(&dashboards, &key, 100);
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
