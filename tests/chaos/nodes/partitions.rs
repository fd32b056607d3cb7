//! A node whose line to the database is held, in one or both directions, cut or slow, while another goes on.

use super::load::Load;
use super::{Answer, Cluster, database};
use crate::prelude::*;
use crate::support::line::{Flow, Line};

/// Two nodes: the first has a line of its own, the second needs none.
struct Pair {
    cluster: Cluster,
    line: Line,
    _database: (Schema, Postgres),
}

impl Pair {
    fn new() -> Self {
        let database = database();
        let (schema, postgres) = &database;
        let line = Line::to(postgres.folder());
        let cluster = Cluster::start([schema.url_at(&line.url(ROLE)), schema.url()]);
        Self { cluster, line, _database: database }
    }

    /// Asserts that the first node refuses reads and writes. It must not wait for its database.
    fn refuses(&self) {
        let cluster = &self.cluster;
        let sent = json!({ "name": "refused" });
        let get = cluster.request("GET", "/api/users/@me/", "", None);
        let post = cluster.request("POST", &cluster.dashboards, "", Some(&sent));
        let answer = |request: &str| match cluster.nodes[0].send(&mut None, request) {
            Answer::Reply(reply) => reply,
            Answer::Refused | Answer::Cut => panic!("no response"),
        };
        for request in [get, post] {
            answer(&request).assert_error(503, "server_error", "unavailable");
        }
        assert_eq!(answer(&cluster.request("GET", "/_livez", "", None)).status, 200);
        let ready = cluster.request("GET", "/_readyz", "", None);
        until("the node is not ready", || (answer(&ready).status == 503).then_some(()));
    }

    /// Asserts that the other node reads and writes.
    fn other_goes_on(&self) {
        let sent = json!({ "name": "other" });
        self.cluster.ask(1, "POST", &self.cluster.dashboards, Some(&sent)).ok();
        self.cluster.ask(1, "GET", &self.cluster.dashboards, None).ok();
    }

    /// Lets all bytes pass, and asserts that both nodes show the same.
    fn heals(&self) {
        self.line.set(Flow::Passes, Flow::Passes);
        let (mut own, _) = self.cluster.list(0);
        let (mut other, _) = self.cluster.list(1);
        own.sort();
        other.sort();
        assert_eq!(own, other);
        assert!(own.iter().all(|(_, name)| name != "refused"), "a refused write was made: {own:?}");
    }
}

#[test]
fn node_without_its_database_refuses_requests_and_another_goes_on() {
    let pair = Pair::new();
    let held = [
        ("both directions held", Flow::Waits, Flow::Waits),
        ("requests held", Flow::Waits, Flow::Passes),
        ("answers held", Flow::Passes, Flow::Waits),
        ("connections end", Flow::Ends, Flow::Ends),
    ];
    for (what, requests, answers) in held {
        pair.line.set(requests, answers);
        println!("{what}");
        pair.refuses();
        pair.other_goes_on();
        pair.heals();
    }
    pair.cluster.check();
}

#[test]
fn nodes_with_held_cut_and_slow_lines_under_load_lose_nothing() {
    let pair = Pair::new();
    let load = Load::new(&pair.cluster);
    load.run(|| {
        for (requests, answers) in [
            (Flow::Passes, Flow::Waits),
            (Flow::Waits, Flow::Passes),
            (Flow::Waits, Flow::Waits),
            (Flow::Passes, Flow::Ends),
        ] {
            load.goes_on(0..2, 5);
            pair.line.set(requests, answers);
            load.goes_on([1], 50);
            pair.line.set(Flow::Passes, Flow::Passes);
            load.goes_on(0..2, 5);
            pair.line.reset();
        }
        pair.line.slow_down(Duration::from_millis(5));
        load.goes_on(0..2, 20);
    });
    load.end().assert_right();
    pair.line.slow_down(Duration::ZERO);
    pair.cluster.check();
}
