//! The disk of the database or of a node is full for a while.

use super::{Answer, Cluster, database};
use crate::disks::Acknowledged;
use crate::disks::full_disk::{Small, fill_disk};
use crate::prelude::*;

/// Lets every commit fail as it does when the disk of the database is full.
const FILL: &str = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON steward_commits EXECUTE FUNCTION full_disk()";
const FREE: &str = "DROP FUNCTION full_disk() CASCADE";

#[test]
fn database_with_a_full_disk_refuses_writes_and_serves_reads() {
    let (schema, _postgres) = database();
    let cluster = Cluster::start([schema.url(), schema.url()]);
    let sent = json!({ "name": "kept" });
    cluster.ask(0, "POST", &cluster.dashboards, Some(&sent)).ok();
    schema.execute(FILL);
    let refused = json!({ "name": "refused" });
    for (at, node) in cluster.nodes.iter().enumerate() {
        let request = cluster.request("POST", &cluster.dashboards, "", Some(&refused));
        let Answer::Reply(reply) = node.send(&mut None, &request) else { panic!("no response") };
        reply.assert_error(503, "server_error", "unavailable");
        let detail = "The service is temporarily unavailable. Try again shortly.";
        assert_eq!(reply.json()["detail"], detail);
        assert_eq!(cluster.ask(at, "GET", &cluster.dashboards, None).ok()["count"], 1);
    }
    schema.execute(FREE);
    cluster.ask(1, "POST", &cluster.dashboards, Some(&json!({ "name": "later" }))).ok();
    assert_eq!(cluster.list(0).1, 2);
    cluster.check();
}

#[test]
fn node_with_a_full_disk_loses_nothing_and_catches_up_with_another() {
    let (schema, _postgres) = database();
    let cluster = Cluster::start([schema.url()]);
    let Some(small) = Small::serving(&schema.url(), "0") else { return };
    let filler = small.path("filler");
    let (path, key) = (&cluster.dashboards, &cluster.key);
    let mut acknowledged = Acknowledged::default();
    let mut create = |name: &str| acknowledged.create(&small.server, (path, key), name);
    until("the node writes", || (create("first") == 201).then_some(()));
    fill_disk(&filler);
    let refused = (0..300).find(|number| create(&format!("full {number}")) == 503);
    assert!(refused.is_some(), "no write failed on the full file system");
    for number in 0..3 {
        create(&format!("still full {number}"));
    }
    for number in 0..20 {
        cluster.ask(0, "POST", path, Some(&json!({ "name": format!("other {number}") }))).ok();
    }
    fs::remove_file(&filler).expect("the filler removed");
    until("the node writes again", || (create("last") == 201).then_some(()));
    let (shown, count) = cluster.list(0);
    acknowledged.assert_shown(&shown);
    let of_small = until("the node reads", || {
        let reply = small.server.get(&format!("{path}?limit=1"), key);
        (reply.status != 503).then_some(reply)
    });
    assert_eq!(of_small.ok()["count"], count);
    cluster.check();
    small.server.stop();
}
