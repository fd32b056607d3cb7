//! The database moves to a standby, or back to an older state, under load.

use std::process::Command;

use rustix::process::{Pid, kill_process};

use super::load::Load;
use super::{Answer, Cluster, HBA, database};
use crate::prelude::*;
use crate::support::postgres::execute;

/// A primary and its standby, and nodes that know both.
struct Pair {
    cluster: Cluster,
    primary: Postgres,
    standby: Postgres,
}

impl Pair {
    /// Starts both servers and three nodes. With `synchronous`, the primary waits for the standby with each commit.
    fn start(synchronous: bool) -> Self {
        let primary = Postgres::start(&["fsync = on"], HBA);
        let url = primary.url(ROLE);
        let schema = Schema::on(&url);
        let standby = primary.standby();
        if synchronous {
            execute(&url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
            execute(&url, "SELECT pg_reload_conf()");
        }
        let wanted = if synchronous { "sync" } else { "async" };
        until("the standby is attached", || {
            let states = execute(&url, "SELECT sync_state FROM pg_stat_replication");
            (states == [[wanted]]).then_some(())
        });
        let folders = [primary.folder(), standby.folder()].map(escaped);
        let both = schema.url_at(&format!("postgres://{ROLE}@{}/postgres", folders.join(",")));
        let cluster = Cluster::start((0..3).map(|_| both.clone()));
        // The schema ends with the servers.
        std::mem::forget(schema);
        Self { cluster, primary, standby }
    }

    /// Kills the primary, and makes the standby the primary.
    fn fail_over(&self) {
        self.primary.kill();
        self.standby.control(&["promote"]);
    }
}

fn escaped(folder: &Path) -> String {
    folder.to_str().expect("UTF-8").replace('/', "%2F")
}

/// Returns the number of the process in the standby that receives what the primary does.
fn receiver(standby: &Postgres) -> Pid {
    let found = execute(&standby.url(ROLE), "SELECT pid FROM pg_stat_wal_receiver");
    Pid::from_raw(found[0][0].parse().expect("a number")).expect("a process")
}

/// Waits until the copy of each node was made again.
fn copies_are_made_again(cluster: &Cluster) {
    for (at, node) in cluster.nodes.iter().enumerate() {
        until(&format!("node {at} has made its copy again"), || {
            node.folder.names().iter().any(|name| name.contains("forked")).then_some(())
        });
        assert_eq!(cluster.ask(at, "GET", "/api/users/@me/", None).status, 200);
    }
}

#[test]
fn failover_to_a_synchronous_standby_loses_nothing() {
    let pair = Pair::start(true);
    let load = Load::new(&pair.cluster);
    load.run(|| {
        load.goes_on(0..3, 20);
        pair.fail_over();
        load.goes_on(0..3, 20);
    });
    load.end().assert_right();
    pair.cluster.check();
}

#[test]
fn write_whose_wait_for_the_standby_is_ended_is_not_acknowledged() {
    let pair = Pair::start(true);
    let (cluster, url) = (&pair.cluster, pair.primary.url(ROLE));
    let request = |name: &str| {
        let sent = json!({ "name": name });
        let once = format!("Idempotency-Key: {name}\r\n");
        cluster.request("POST", &cluster.dashboards, &once, Some(&sent))
    };
    for by in ["pg_cancel_backend", "pg_terminate_backend"] {
        pair.standby.control(&["stop", "-m", "immediate"]);
        let end = format!(
            "SELECT {by}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query NOT LIKE '%steward_nodes%'"
        );
        let sent = request(by);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| cluster.nodes[0].send(&mut None, &sent));
            until("its wait is ended", || (!execute(&url, &end).is_empty()).then_some(()));
            // Until the node gives up, it makes durable writes, which wait for the standby too.
            let answer = writing.join().expect("no panic");
            let Answer::Reply(reply) = answer else { panic!("no response") };
            reply.assert_error(503, "server_error", "unavailable");
        });
        // The response of another node would repeat what the standby lacks.
        if let Answer::Reply(reply) = cluster.nodes[1].send(&mut None, &sent) {
            reply.assert_error(503, "server_error", "unavailable");
        }
        pair.standby.control(&["start"]);
        until("the write is acknowledged", || match cluster.nodes[1].send(&mut None, &sent) {
            Answer::Reply(reply) if reply.status == 201 => Some(()),
            _ => None,
        });
    }
    pair.fail_over();
    let (shown, _) = cluster.list(2);
    let mut names: Vec<_> = shown.into_iter().map(|(_, name)| name).collect();
    names.sort();
    assert_eq!(names, ["pg_cancel_backend", "pg_terminate_backend"]);
    cluster.check();
}

#[test]
fn failover_to_a_standby_that_is_behind_is_noticed_by_every_node() {
    let pair = Pair::start(false);
    let load = Load::new(&pair.cluster);
    load.run(|| {
        load.goes_on(0..3, 20);
        let receiver = receiver(&pair.standby);
        kill_process(receiver, Signal::STOP).expect("a process");
        // These writes are lost: the standby never receives them.
        load.goes_on(0..3, 20);
        pair.primary.kill();
        kill_process(receiver, Signal::KILL).expect("a process");
        pair.standby.control(&["promote"]);
        load.goes_on(0..3, 20);
    });
    copies_are_made_again(&pair.cluster);
    let report = load.end();
    println!("{report}");
    assert!(!report.wrong.is_empty(), "the primary had more than the standby");
    pair.cluster.check();
}

#[test]
fn older_data_of_the_database_are_noticed_by_every_node() {
    let (schema, postgres) = database();
    let cluster = Cluster::start((0..3).map(|_| schema.url()));
    let create = |name: &str| {
        cluster.ask(1, "POST", &cluster.dashboards, Some(&json!({ "name": name }))).ok();
    };
    create("kept");
    let [data, older] = ["data", "older"].map(|name| postgres.folder().join(name));
    postgres.control(&["stop", "-m", "fast"]);
    copy(&data, &older);
    postgres.control(&["start"]);
    for number in 0..20 {
        create(&format!("lost {number}"));
    }
    for node in 0..3 {
        assert_eq!(cluster.list(node).1, 21);
    }
    postgres.control(&["stop", "-m", "fast"]);
    std::fs::remove_dir_all(&data).expect("removed");
    copy(&older, &data);
    postgres.control(&["start"]);
    copies_are_made_again(&cluster);
    for node in 0..3 {
        let (shown, count) = cluster.list(node);
        let names: Vec<_> = shown.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!((names, count), (vec!["kept"], 1));
    }
    create("later");
    assert_eq!(cluster.list(2).1, 2);
    cluster.check();
}

/// Copies a folder with the owners of its files.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status().expect("cp");
    assert!(status.success(), "{status}");
}
