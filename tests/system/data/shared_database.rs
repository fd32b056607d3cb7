//! A shared PostgreSQL database with the real binary: nodes that start, die and come back, and the commands around them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::postgres::{Schema, Server as Postgres, execute};
use crate::support::process::{Connection, DataFolder, Server, until};

/// The URL of the schema, and the folders of its nodes.
struct Cluster {
    schema: Schema,
    nodes: [DataFolder; 2],
}

impl Cluster {
    fn new() -> Self {
        Self { schema: Schema::new(), nodes: [DataFolder::empty(), DataFolder::empty()] }
    }

    fn serve(&self, node: usize) -> Server {
        self.nodes[node].serve(&["--data", &self.schema.url()])
    }

    /// Returns the key and the path of the dashboards of the first start, which was that of this node.
    fn first_run(&self, node: usize, server: &Server) -> (String, Value) {
        let text = std::fs::read_to_string(self.nodes[node].path("steward-copy.redb.first-key"));
        let key = text.expect("a key").trim_end().to_owned();
        let projects = server.get("/api/projects/", &key).ok();
        (key, projects["results"][0]["id"].clone())
    }
}

#[test]
fn nodes_share_one_workspace_and_commands_find_their_server() {
    let cluster = Cluster::new();
    let first = cluster.serve(0);
    let (key, project) = cluster.first_run(0, &first);
    let second = cluster.serve(1);
    assert!(!cluster.nodes[1].names().iter().any(|name| name.contains("first-key")));
    let path = format!("/api/projects/{project}/dashboards/");
    let created = first.post(&path, &key, &json!({ "name": "Revenue" })).ok();
    let one = format!("{path}{}/", created["id"]);
    assert_eq!(second.get(&one, &key).ok(), created);
    // Without `--data`: the servers know the database.
    for node in &cluster.nodes {
        let users = node.json(&["user", "list"]);
        assert_eq!(users["results"].as_array().map(Vec::len), Some(1));
        assert_eq!(node.json(&["healthcheck"])["ready"], true);
        node.check();
    }
    first.stop();
    second.stop();
    let copy = cluster.nodes[0].run(&["user", "list"]);
    copy.assert_failed("steward-copy.redb is a node's copy of a database; pass the database");
    cluster.nodes[0].json(&["backup", "backup.redb", "--data", &cluster.schema.url()]);
    let copied = std::fs::read(cluster.nodes[0].path("steward-copy.redb")).expect("the copy");
    let replaced = cluster.nodes[0].run(&["restore", "backup.redb"]);
    replaced.assert_failed("steward-copy.redb is a node's copy of a database");
    let kept = std::fs::read(cluster.nodes[0].path("steward-copy.redb")).expect("the copy");
    assert!(kept == copied, "a restore without the database changed the copy");
    let elsewhere = DataFolder::empty();
    let users = elsewhere.json(&["user", "list", "--data", &cluster.schema.url()]);
    assert_eq!(users["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(elsewhere.names(), [""; 0], "a command leaves no copy behind");
}

#[test]
fn killed_node_loses_nothing_and_its_copy_catches_up() {
    let cluster = Cluster::new();
    let first = cluster.serve(0);
    let (key, project) = cluster.first_run(0, &first);
    let second = cluster.serve(1);
    let path = format!("/api/projects/{project}/dashboards/");
    let (acknowledged, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        for (writer, server) in [(0, &first), (1, &second), (2, &first), (3, &second)] {
            let (acknowledged, is_over, key, path) = (&acknowledged, &is_over, &key, &path);
            scope.spawn(move || {
                let Ok(mut connection) = Connection::open(server.address) else { return };
                for number in 0.. {
                    let name = format!("w{writer} {number:05}");
                    let body = json!({ "name": name });
                    let Ok(reply) = connection.send("POST", path, key, Some(&body)) else { return };
                    // The database may need longer than a node waits for it.
                    if reply.status != 503 {
                        let id = reply.ok()["id"].as_u64().expect("an id");
                        acknowledged.lock().unwrap().push((id, name));
                    }
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        let enough = |count: usize| (acknowledged.lock().unwrap().len() >= count).then_some(());
        until("both nodes write", || enough(100));
        first.signal(Signal::KILL);
        let at_kill = acknowledged.lock().unwrap().len();
        until("the other node goes on", || enough(at_kill + 50));
        is_over.store(true, Ordering::Relaxed);
    });
    let _ = first.wait();
    let first = cluster.serve(0);
    let mut acknowledged = acknowledged.into_inner().unwrap();
    acknowledged.sort();
    for server in [&first, &second] {
        let found = server.dashboards(&project, &key);
        let lost: Vec<_> = acknowledged.iter().filter(|one| !found.contains(one)).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
    for node in &cluster.nodes {
        node.check();
    }
    first.stop();
    second.stop();
}

#[test]
fn database_that_goes_away_and_comes_back_is_used_again() {
    let postgres = Postgres::start(&["fsync = on"], "local all steward trust");
    let schema = Schema::on(&postgres.url("steward"));
    let node = DataFolder::empty();
    let server = node.serve(&["--data", &schema.url()]);
    let text = std::fs::read_to_string(node.path("steward-copy.redb.first-key"));
    let key = text.expect("a key").trim_end().to_owned();
    assert_eq!(server.get("/api/users/@me/", &key).status, 200);
    postgres.control(&["stop", "-m", "immediate"]);
    let refused = server.get("/api/users/@me/", &key);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(server.get("/_livez", "").status, 200);
    until("the node is not ready", || (server.get("/_readyz", "").status == 503).then_some(()));
    postgres.control(&["start"]);
    until("the node reads again", || {
        (server.get("/api/users/@me/", &key).status == 200).then_some(())
    });
    let name = json!({ "first_name": "A" });
    until("the node writes again", || {
        let reply = server.send("PATCH", "/api/users/@me/", &key, Some(&name));
        (reply.status == 200 && reply.json()["first_name"] == "A").then_some(())
    });
    until("the node is ready", || (server.get("/_readyz", "").status == 200).then_some(()));
    server.stop();
}

#[test]
fn refused_databases_are_named_without_their_password() {
    let node = DataFolder::empty();
    let schema = Schema::new();
    let url = schema.url().replacen("steward@", "nobody:hunter2@", 1);
    let refused = node.run(&["user", "list", "--data", &url]).assert_failed("nobody:********@");
    assert!(!refused.contains("hunter2"), "{refused}");
    let empty = node.run(&["user", "list", "--data", &schema.url()]);
    empty.assert_failed("holds no workspace");
    execute(&schema.url(), "CREATE TABLE steward_head (x int)");
    let foreign = node.try_serve(&["--data", &schema.url()]).err().expect("a refusal");
    assert!(foreign.stderr.contains("that Steward did not create"), "{foreign:?}");
    let shown = node.json(&["config", "--data", &url]);
    assert!(!shown.to_string().contains("hunter2"), "{shown}");
    node.run(&["backup", "x.redb", "--data", "postgres://a:hunter2@h/a b"])
        .assert_usage_error("a character that must be percent-encoded");
}

#[test]
fn workspace_moves_into_a_database_and_back_by_command() {
    let (site, made) = DataFolder::with_workspace();
    let schema = Schema::new();
    site.json(&["backup", "backup.redb"]);
    let restored = site.json(&["restore", "backup.redb", "--data", &schema.url()]);
    assert_eq!(
        (&restored["database"], &restored["replaced"]),
        (&json!(schema.url()), &Value::Null)
    );
    let node = DataFolder::empty();
    let server = node.serve(&["--data", &schema.url()]);
    let key = made["api_key"].as_str().expect("a key");
    assert_eq!(server.get("/api/users/@me/", key).ok()["email"], "owner@corp.example");
    node.json(&["backup", "back.redb"]);
    server.stop();
    let back = DataFolder::empty();
    std::fs::copy(node.path("back.redb"), back.data()).expect("a copy");
    let server = back.serve(&[]);
    assert_eq!(server.get("/api/users/@me/", key).status, 200);
    server.stop();
}
