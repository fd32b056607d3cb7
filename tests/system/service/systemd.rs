//! Notifications to systemd, with the real binary and a real socket.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, prlimit};
use serde_json::json;

use crate::support::process::{DataFolder, STEWARD, Server, cleared, until};
use crate::support::systemd::SystemdManager;

const DASHBOARDS: &str = "/api/projects/1/dashboards/";

#[test]
fn systemd_is_notified_of_ready_reload_and_stop() {
    let (site, _) = DataFolder::with_workspace();
    let manager = SystemdManager::of(&site);
    let server = Server::start(&mut manager.steward(&site, &[], None)).expect("it serves");
    let status = format!("STATUS=serving http://{}", server.address);
    assert_eq!(manager.next(), ["READY=1", &status]);
    assert_eq!(server.get("/_livez", "").status, 200);
    server.signal(Signal::HUP);
    let told = manager.next();
    assert_eq!((told.len(), told[0].as_str()), (2, "RELOADING=1"));
    let moment = told[1].strip_prefix("MONOTONIC_USEC=").expect("the moment");
    assert!(moment.parse::<u64>().expect("a number") > 0);
    assert_eq!(manager.next(), ["READY=1", &status]);
    let mut busy = server.connect();
    busy.write("POST /api/signup/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n").expect("sent");
    server.signal(Signal::TERM);
    assert_eq!(manager.next(), ["STOPPING=1", "STATUS=finishing requests under way"]);
    drop(busy);
    assert_eq!(server.wait().0, Some(0));
    assert_eq!(manager.received_within(Duration::from_millis(50)), None, "no watchdog");
}

#[test]
fn service_that_cannot_start_never_reports_ready() {
    let site = DataFolder::with_bytes(b"no data file");
    let manager = SystemdManager::of(&site);
    let run = Server::start(&mut manager.steward(&site, &[], None)).err().expect("it ends");
    assert_eq!(run.code, Some(1));
    assert_eq!(manager.received_within(Duration::from_millis(50)), None);
}

#[test]
fn missing_service_manager_does_not_prevent_serving() {
    let (site, _) = DataFolder::with_workspace();
    let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    command.env("NOTIFY_SOCKET", site.path("nowhere")).env("WATCHDOG_USEC", "1000000");
    let server = Server::start(&mut command).expect("it serves");
    assert_eq!(server.get("/_livez", "").status, 200);
    assert!(server.stop().contains("could not notify the service manager"));
}

#[test]
fn invalid_watchdog_settings_are_ignored() {
    let (site, _) = DataFolder::with_workspace();
    let manager = SystemdManager::of(&site);
    for (within, process) in [("0", ""), ("soon", ""), ("200000", "1")] {
        let mut command = manager.steward(&site, &[], None);
        command.env("WATCHDOG_USEC", within);
        if !process.is_empty() {
            command.env("WATCHDOG_PID", process);
        }
        let server = Server::start(&mut command).expect("it serves");
        manager.assert_received("READY=1");
        assert_eq!(manager.received_within(Duration::from_millis(300)), None, "{within}");
        server.stop();
        manager.assert_received("STOPPING=1");
    }
}

/// Waits for the next notification of the watchdog. Only a status may come before it, if the disk was slow for a moment.
#[track_caller]
fn next_watchdog(manager: &SystemdManager) {
    loop {
        let told = manager.next();
        if told == ["WATCHDOG=1"] {
            return;
        }
        assert!(told.len() == 1 && told[0].starts_with("STATUS="), "{told:?}");
    }
}

#[test]
fn watchdog_is_notified_only_while_the_file_accepts_writes() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let manager = SystemdManager::of(&site);
    let within = Duration::from_secs(4);
    let mut command = cleared("sh");
    command.current_dir(site.folder());
    // With the signal ignored, a write beyond the limit fails with an error.
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", STEWARD]);
    command.args(["serve", "--listen", "127.0.0.1:0", "--json"]);
    manager.supervise(&mut command, Some(within));
    let server = Server::start(&mut command).expect("it serves");
    manager.assert_received("READY=1");

    let mut rounds = Vec::new();
    while rounds.len() < 3 && rounds.iter().all(|took| *took >= within * 4) {
        let begun = Instant::now();
        manager.drain();
        for _ in 0..4 {
            next_watchdog(&manager);
        }
        rounds.push(begun.elapsed());
    }
    assert!(rounds.iter().all(|took| *took >= within / 2), "four in {rounds:?}");
    assert!(rounds.iter().any(|took| *took < within * 4), "four in {rounds:?}");

    let limit = |bytes| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(server.pid()), Resource::Fsize, limit).expect("the limit can be set");
    };
    let create = || server.post(DASHBOARDS, key, &json!({ "name": "A" })).status;
    manager.drain();
    next_watchdog(&manager);
    limit(Some(0));
    assert_eq!(create(), 503);
    manager.assert_received("STATUS=the data file accepts no writes");
    assert_eq!(manager.received_within(within * 2), None, "the watchdog was still notified");
    assert_eq!(create(), 503);

    limit(None);
    manager.assert_received("WATCHDOG=1");
    assert_eq!(manager.next(), [format!("STATUS=serving http://{}", server.address)]);
    until("the service takes writes again", || (create() == 201).then_some(()));
    let log = server.stop();
    assert!(log.contains("the data file accepts no writes; the watchdog is not notified"), "{log}");
}
