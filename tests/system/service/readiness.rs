//! `/_livez`, `/_readyz` and `steward healthcheck`: their responses in each state of the server.

use std::sync::mpsc;

use steward::testing::error::Error;

use crate::prelude::*;
use crate::support::{ClosedFile, TestResponse, eventually_async};

/// Creates a workspace that records the number of writes in each commit.
async fn watched() -> (Workspace, Arc<Mutex<Vec<usize>>>) {
    let (workspace, commits) = (Workspace::new().await, Arc::<Mutex<Vec<usize>>>::default());
    let told = Arc::clone(&commits);
    workspace.app.store().on_commit(move |commit| told.lock().expect("whole").push(commit.writes));
    (workspace, commits)
}

#[tokio::test]
async fn concurrent_readiness_checks_share_one_probe_write() {
    let (workspace, commits) = watched().await;
    let nobody = workspace.anonymous();
    for _ in 0..20 {
        assert_eq!(nobody.get("/_livez").await.bytes, b"ok\n");
    }
    assert!(commits.lock().expect("whole").is_empty(), "/_livez must not write");
    for answer in futures_util::future::join_all((0..50).map(|_| nobody.get("/_readyz"))).await {
        assert_eq!((answer.status, answer.bytes.as_slice()), (200, b"ok\n".as_slice()));
    }
    assert_eq!(nobody.get("/_readyz").await.status, 200, "the result must be reused for a while");
    let probes = commits.lock().expect("whole").clone();
    // One, and another one if the requests took longer than the five seconds for which it counts.
    assert!((1..=2).contains(&probes.len()), "{probes:?}");
    assert!(probes.iter().all(|writes| *writes == 0), "{probes:?}");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn readiness_check_does_not_probe_during_writes() {
    let (workspace, commits) = watched().await;
    for name in ["A", "B", "C"] {
        workspace.owner.post(&workspace.dashboards(""), json!({ "name": name })).await.ok();
        assert_eq!(workspace.anonymous().get("/_readyz").await.status, 200);
    }
    let commits = commits.lock().expect("whole");
    assert!(!commits.contains(&0), "{commits:?}");
}

#[tokio::test]
async fn repeated_probes_do_not_grow_the_file() {
    let workspace = Workspace::new().await;
    let size = || workspace.path().metadata().expect("a file").len();
    for _ in 0..20 {
        workspace.app.store().probe_commit().await.expect("the disk takes it");
    }
    let before = size();
    for _ in 0..300 {
        workspace.app.store().probe_commit().await.expect("the disk takes it");
    }
    assert_eq!(size(), before);
    workspace.assert_file_valid().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_writer_makes_the_service_unready_until_it_continues() {
    let workspace = Workspace::new().await;
    let (let_go, held) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let store = workspace.app.store().clone();
    let stuck = tokio::spawn(async move {
        let hang = move |_: &mut steward::testing::store::WriteTx<'_>| {
            tell.send(()).map_err(Error::internal)?;
            held.lock().expect("whole").recv().map_err(Error::internal)
        };
        store.write(hang).await
    });
    let nobody = workspace.anonymous();
    told.recv().expect("it hangs");
    for answer in futures_util::future::join_all((0..20).map(|_| nobody.get("/_readyz"))).await {
        refuses(&answer);
    }
    refuses(&nobody.get("/_readyz").await);
    assert_eq!(nobody.get("/_livez").await.status, 200);
    let reads = nobody.get("/_readyz/reads").await;
    assert_eq!((reads.status, reads.bytes.as_slice()), (200, b"ok\n".as_slice()));
    workspace.owner.get("/api/users/@me/").await.ok();
    let_go.send(()).expect("it hangs");
    stuck.await.expect("no panic").expect("written");
    eventually_async("ready again", async || {
        (nobody.get("/_readyz").await.status == 200).then_some(())
    })
    .await;
    workspace.assert_file_valid().await;
}

#[track_caller]
fn refuses(answer: &TestResponse) {
    let text = "The service is temporarily unavailable. Try again shortly.";
    answer.assert_error(503, "server_error", "unavailable", text, None);
    assert_eq!(answer.headers["retry-after"], "1");
}

#[test]
fn idle_service_with_an_unwritable_disk_becomes_unready() {
    let (site, made) = DataFolder::with_workspace();
    let server = site.serve_limited(|_| {});
    server.limit_files(Some(0));
    let refused = until("the server is not ready", || {
        let reply = server.get("/_readyz", "");
        (reply.status != 200).then_some(reply)
    });
    refused.assert_error(503, "server_error", "unavailable");
    assert_eq!(server.get("/_livez", "").status, 200);
    site.run(&["healthcheck"]).assert_failed("");
    server.limit_files(None);
    until("the server is ready again", || (server.get("/_readyz", "").status == 200).then_some(()));
    assert_eq!(server.get("/api/users/@me/", made["api_key"].as_str().expect("a key")).status, 200);
    server.stop();
    site.check();
}

/// Returns a command that serves at this address, and the pipe that it waits for before it opens its file.
fn blocked(site: &DataFolder, address: SocketAddr) -> (Command, PathBuf) {
    let password = site.path("password");
    assert_eq!(cleared("mkfifo").arg(&password).status().expect("mkfifo").code(), Some(0));
    let mut command = site.steward(&["serve", "--json", "--listen", &address.to_string()]);
    command.args(["--smtp-url", "smtp://ann@127.0.0.1:9", "--smtp-from", "a@corp.example"]);
    command.arg("--smtp-password-file").arg(&password);
    (command, password)
}

#[test]
fn server_responds_before_its_file_is_open_and_keeps_its_connections() {
    let (site, made) = DataFolder::with_workspace();
    let (key, address) = (made["api_key"].as_str().expect("a key"), own_address());
    let (mut command, password) = blocked(&site, address);
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| Server::start(&mut command).expect("it serves"));
        let mut connection = until("it listens", || Connection::open(address).ok());
        let me = "/api/users/@me/";
        for _ in 0..2 {
            let reply = connection.send("GET", "/_livez", "", None).expect("an answer");
            assert_eq!((reply.status, reply.body.as_slice()), (200, b"ok\n".as_slice()));
            for line in [
                "GET /_readyz",
                "GET /_readyz/reads",
                &format!("GET {me}"),
                "GET /",
                "POST /_livez",
                "X /api/",
            ] {
                connection.write(format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n")).expect("sent");
                let reply = connection.reply().expect("an answer");
                reply.assert_error(503, "server_error", "unavailable");
                assert!(reply.header("x-request-id").is_some());
            }
        }
        site.run(&["healthcheck"]).assert_failed("no server is serving steward.redb");
        std::fs::write(&password, "hunter2").expect("written");
        let server = starting.join().expect("it serves");
        assert_eq!(connection.send("GET", me, key, None).expect("an answer").status, 200);
        assert_eq!(connection.send("GET", "/_readyz", "", None).expect("an answer").status, 200);
        server.stop();
    });
    site.check();
}

#[test]
fn draining_server_is_unready_and_serves_until_a_second_stop_signal() {
    let Served { site, server, key, dashboards } = Served::with(&["--drain-delay", "1h"]);
    let mut open = server.connect();
    assert_eq!(open.send("GET", "/_readyz", "", None).expect("an answer").status, 200);
    assert_eq!(site.json(&["healthcheck"]), json!({ "ready": true }));
    server.signal(Signal::TERM);
    until("the server is no longer ready", || {
        (server.get("/_readyz", "").status == 503).then_some(())
    });
    let reply = open.send("GET", "/_readyz", "", None).expect("an answer");
    reply.assert_error(503, "server_error", "unavailable");
    site.run(&["healthcheck"]).assert_failed("the service is stopping");
    assert_eq!(server.get("/_livez", "").status, 200);
    assert_eq!(server.post(&dashboards, &key, &json!({ "name": "Late" })).status, 201);
    server.stop();
    // Without a second signal, it stops when the delay ends.
    site.serve(&["--drain-delay", "200ms"]).stop();
    site.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn service_is_unready_while_its_file_is_closed_and_when_it_drains() {
    let workspace = Workspace::new().await;
    let nobody = workspace.anonymous();
    assert_eq!(nobody.get("/_readyz").await.status, 200);
    let refuses_both = async || {
        for path in ["/_readyz", "/_readyz/reads"] {
            refuses(&nobody.get(path).await);
        }
        assert_eq!(nobody.get("/_livez").await.status, 200);
    };
    let closed = ClosedFile::of(&workspace).await;
    refuses_both().await;
    closed.open().await;
    assert_eq!(nobody.get("/_readyz").await.status, 200);
    workspace.assert_file_valid().await;
    // The disk works while the service drains.
    workspace.app.drain();
    refuses_both().await;
    assert!(!workspace.app.known_ready());
    workspace.owner.get("/api/users/@me/").await.ok();
}

#[test]
fn healthcheck_reports_the_server_state_and_has_a_timeout() {
    let (site, _) = DataFolder::with_workspace();
    let known = site.files();
    site.run(&["healthcheck"]).assert_failed("no server is serving steward.redb");
    assert_eq!(site.files(), known, "the command must not change a file");
    let server = site.serve(&[]);
    assert_eq!(site.json(&["healthcheck"]), json!({ "ready": true }));
    server.signal(Signal::STOP);
    site.run(&["healthcheck"]).assert_failed("the server did not answer within 5s");
    server.signal(Signal::CONT);
    assert_eq!(site.json(&["healthcheck"]), json!({ "ready": true }));
    server.kill();
    site.run(&["healthcheck"]).assert_failed("no server is serving steward.redb");
    DataFolder::empty().run(&["healthcheck"]).assert_failed("no server is serving steward.redb");
}
