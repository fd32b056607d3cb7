//! Notifications to systemd, with the real binary and a real socket.

use crate::prelude::*;

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
    assert!(manager.received().is_empty(), "no watchdog");
}

#[test]
fn service_that_cannot_start_never_reports_ready() {
    let site = DataFolder::with_bytes(b"no data file");
    let manager = SystemdManager::of(&site);
    let run = Server::start(&mut manager.steward(&site, &[], None)).err().expect("it ends");
    assert_eq!(run.code, Some(1));
    assert!(manager.received().is_empty());
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
        // A watchdog is notified for the first time after a commit such as this.
        assert_eq!(server.get("/_readyz", "").status, 200);
        server.stop();
        let told: Vec<_> = manager.received().concat();
        assert!(told.iter().all(|line| line != "WATCHDOG=1"), "{within}: {told:?}");
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
    // Its notifications tell how time passes.
    let healthy_site = DataFolder::empty();
    let healthy = SystemdManager::of(&healthy_site);
    let mut beside = healthy.steward(&healthy_site, &[], Some(within));
    let _beside = Server::start(&mut beside).expect("it serves");
    let server = site.serve_limited(|command| manager.supervise(command, Some(within)));
    manager.assert_received("READY=1");

    let create = || server.post(DASHBOARDS, key, &json!({ "name": "A" })).status;
    next_watchdog(&manager);
    manager.received();
    next_watchdog(&manager);
    server.limit_files(Some(0));
    assert_eq!(create(), 503);
    manager.assert_received("STATUS=the data file accepts no writes");
    healthy.received();
    for _ in 0..3 {
        healthy.assert_received("WATCHDOG=1");
    }
    let told = manager.received();
    assert!(told.is_empty(), "the watchdog was still notified: {told:?}");
    assert_eq!(create(), 503);

    server.limit_files(None);
    manager.assert_received("WATCHDOG=1");
    assert_eq!(manager.next(), [format!("STATUS=serving http://{}", server.address)]);
    until("the service takes writes again", || (create() == 201).then_some(()));
    let log = server.stop();
    assert!(log.contains("the data file accepts no writes; the watchdog is not notified"), "{log}");
}
