//! A shared PostgreSQL database with the real binary: its nodes, and the commands around them.

use std::io::BufRead;

use crate::prelude::*;
use crate::support::postgres::{Schema, Server as Postgres, execute};
use crate::support::process::KillOnDrop;

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

    /// Starts the first node, which founds the workspace.
    fn found(&self) -> Server {
        self.nodes[0].serve(&["--data", &self.schema.url(), "--found"])
    }

    /// Returns the key and the path of the dashboards of the first start, which was that of this node.
    fn first_run(&self, node: usize, server: &Server) -> (String, Value) {
        let key = first_key(&self.nodes[node]);
        let projects = server.get("/api/projects/", &key).ok();
        (key, projects["results"][0]["id"].clone())
    }
}

/// Returns the key that the first start of this node wrote.
fn first_key(node: &DataFolder) -> String {
    let text = std::fs::read_to_string(node.path("steward-copy.redb.first-key"));
    text.expect("a key").trim_end().to_owned()
}

#[test]
fn nodes_share_one_workspace_and_commands_find_their_server() {
    let cluster = Cluster::new();
    let first = cluster.found();
    let (key, project) = cluster.first_run(0, &first);
    let second = cluster.serve(1);
    assert!(!cluster.nodes[1].names().iter().any(|name| name.contains("first-key")));
    let path = format!("/api/projects/{project}/dashboards/");
    let created = first.post(&path, &key, &json!({ "name": "Revenue" })).ok();
    assert_eq!(second.get(&format!("{path}{}/", created["id"]), &key).ok(), created);
    // Without `--data`: the servers know the database.
    for node in &cluster.nodes {
        assert_eq!(node.json(&["user", "list"])["results"].as_array().map(Vec::len), Some(1));
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
fn workspace_is_founded_only_by_a_node_that_is_told_to() {
    let (schema, node) = (Schema::new(), DataFolder::empty());
    let url = schema.url();
    for _ in 0..2 {
        let refused = node.try_serve(&["--data", &url]).err().expect("a refusal");
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        for part in ["holds no workspace; `steward init` creates one", "serve --found"] {
            assert!(refused.stderr.contains(part), "{refused:?}");
        }
        assert_eq!(node.names(), [""; 0], "nothing is left");
    }
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    assert_eq!(schema.execute(tables), [["0"]], "nothing is created");
    let first = node.serve(&["--data", &url, "--found"]);
    assert!(node.path("steward-copy.redb.first-key").exists());
    // The flag does no harm where there is a workspace.
    let other = DataFolder::empty();
    let second = other.serve(&["--data", &url, "--found"]);
    assert!(!other.path("steward-copy.redb.first-key").exists());
    second.stop();
    first.stop();
    node.serve(&["--data", &url]).stop();
    let (schema, initialized) = (Schema::new(), DataFolder::empty());
    let url = schema.url();
    initialized.json(&["init", "--email", "ann@corp.example", "--data", &url]);
    initialized.serve(&["--data", &url]).stop();
    let again = initialized.run(&["init", "--email", "ann@corp.example", "--data", &url]);
    again.assert_failed("already holds a workspace");
    // Rows without a head are not mixed with a new workspace.
    schema.execute("DELETE FROM steward_head; DELETE FROM steward_commits");
    let elsewhere = DataFolder::empty();
    let refused = elsewhere.try_serve(&["--data", &url, "--found"]).err().expect("a refusal");
    assert!(refused.stderr.contains("the rows of a workspace and no head"), "{refused:?}");
    assert_eq!(schema.execute("SELECT count(*) FROM steward_head"), [["0"]]);
}

#[test]
fn copy_of_another_workspace_is_never_given_up() {
    let cluster = Cluster::new();
    let first = cluster.found();
    let (key, _) = cluster.first_run(0, &first);
    let second = cluster.serve(1);
    assert_eq!(second.get("/api/users/@me/", &key).status, 200);
    first.stop();
    // Somebody creates the database again.
    let tables = "steward_head, steward_commits, steward_rows, steward_nodes";
    cluster.schema.execute(&format!("DROP TABLE {tables}"));
    let url = cluster.schema.url();
    for args in [&["--found"][..], &[]] {
        let args = [&["--data", &url][..], args].concat();
        let refused = cluster.nodes[0].try_serve(&args).err().expect("a refusal");
        assert!(refused.stderr.contains("is a copy of one"), "{refused:?}");
    }
    DataFolder::empty().json(&["init", "--email", "new@corp.example", "--data", &url]);
    let refused = cluster.nodes[0].try_serve(&["--data", &url]).err().expect("a refusal");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("steward-copy.redb is a copy of another workspace than postgres://"),
        "{refused:?}"
    );
    // The node that runs serves nothing of the new workspace, and keeps its copy as well.
    until("the node refuses", || (second.get("/api/users/@me/", &key).status == 503).then_some(()));
    until("the node says why", || {
        let nodes = cluster.nodes[1].json(&["nodes"]);
        nodes.to_string().contains("copy of another workspace").then_some(())
    });
    let log = second.stop();
    assert!(log.contains("is a copy of another workspace"), "{log}");
    for node in &cluster.nodes {
        assert!(!node.names().iter().any(|name| name.contains("forked")), "{:?}", node.names());
        let rescued = ["backup", "rescued.redb", "--data", "postgres://steward@127.0.0.1:1/x"];
        node.json(&rescued);
        let file = node.json(&["user", "list", "--data", "rescued.redb"]);
        assert_eq!(file["results"][0]["email"], "owner@example.com");
    }
}

#[test]
fn node_that_waits_for_its_database_says_why_and_stops_at_once() {
    let (node, address) = (DataFolder::empty(), own_address());
    // Nobody listens at this port.
    let url = format!("postgres://ann:hunter2@{}/x", own_address());
    let mut command = node.steward(&["serve", "--json", "--listen", &address.to_string()]);
    command.args(["--data", &url]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = KillOnDrop(command.spawn().expect("the binary starts"));
    let errors = BufReader::new(child.0.stderr.take().expect("a pipe"));
    let mut lines = errors.lines().map(|line| line.expect("a line"));
    let waiting = lines.find(|line| line.contains("waiting for the database")).expect("a line");
    assert!(waiting.contains("WARN") && waiting.contains("ann:********@"), "{waiting}");
    let mut connection = until("it listens", || Connection::open(address).ok());
    for path in ["/_readyz", "/_readyz/reads"] {
        let reply = connection.send("GET", path, "", None).expect("an answer");
        reply.assert_error(503, "server_error", "unavailable");
    }
    kill_process(Pid::from_child(&child.0), Signal::TERM).expect("it runs");
    let rest: Vec<_> = lines.collect();
    assert_eq!(child.0.wait().expect("it ends").code(), Some(0), "{rest:?}");
    let rest = rest.join("\n");
    assert!(rest.contains("stopped before the data file was open"), "{rest}");
    assert!(!rest.contains("panicked") && !rest.contains("hunter2"), "{rest}");
}

#[test]
fn node_without_a_standby_reads_and_says_why_it_does_not_write() {
    let postgres = Postgres::start(&["fsync = on"], "local all steward trust");
    let (url, node) = (postgres.url("steward"), DataFolder::empty());
    let schema = Schema::on(&url);
    let server = node.serve(&["--data", &schema.url(), "--found", "--node", "a"]);
    let key = first_key(&node);
    let is_ready = |path: &str| server.get(path, "").status == 200;
    until("the node is ready", || {
        (is_ready("/_readyz") && is_ready("/_readyz/reads")).then_some(())
    });
    let set = |names: &str| {
        execute(&url, &format!("ALTER SYSTEM SET synchronous_standby_names = {names}"));
        execute(&url, "SELECT pg_reload_conf()");
    };
    set("'*'");
    until("writes are not ready", || (!is_ready("/_readyz")).then_some(()));
    let problem = until("the node says why", || {
        Some(node.json(&["nodes"])["results"][0]["problem"].as_str()?.to_owned())
    });
    assert!(problem.contains("takes no durable writes"), "{problem}");
    node.run(&["healthcheck"]).assert_failed("takes no durable writes");
    assert!(is_ready("/_readyz/reads"));
    assert_eq!(server.get("/api/users/@me/", &key).status, 200);
    set("''");
    until("writes are ready again", || is_ready("/_readyz").then_some(()));
    until("nothing is wrong", || {
        node.json(&["nodes"])["results"][0]["problem"].is_null().then_some(())
    });
    let log = server.stop();
    assert!(log.contains("WARN") && log.contains("takes no durable writes"), "{log}");
}

#[test]
fn refused_databases_are_named_without_their_password() {
    let node = DataFolder::empty();
    let schema = Schema::new();
    let url = schema.url().replacen("steward@", "nobody:hunter2@", 1);
    let refused = node.run(&["user", "list", "--data", &url]).assert_failed("nobody:********@");
    assert!(!refused.contains("hunter2"), "{refused}");
    node.run(&["user", "list", "--data", &schema.url()]).assert_failed("holds no workspace");
    execute(&schema.url(), "CREATE TABLE steward_head (x int)");
    let foreign = node.try_serve(&["--data", &schema.url(), "--found"]).err().expect("a refusal");
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
    assert_eq!(restored["database"], schema.url());
    assert_eq!(restored["replaced"], Value::Null);
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

/// Returns the members `name` of all listed nodes.
fn listed(list: &Value, name: &str) -> Vec<Value> {
    list["results"].as_array().expect("a list").iter().map(|node| node[name].clone()).collect()
}

#[test]
fn nodes_are_listed_by_a_server_and_without_one() {
    let schema = Schema::new();
    let url = schema.url();
    let [a, b] = ["a", "b"].map(|name| {
        let site = DataFolder::empty();
        let founds = (name == "a").then_some("--found");
        let server =
            site.serve(&[&["--data", &url, "--node", name][..], founds.as_slice()].concat());
        (site, server)
    });
    let list = |site: &DataFolder| site.json(&["nodes", "--data", &url]);
    for site in [&a.0, &b.0] {
        until("both nodes are listed", || {
            let found = list(site);
            let leases = listed(&found, "leases");
            let is_whole = listed(&found, "name") == ["a", "b"]
                && listed(&found, "behind") == [0, 0]
                && leases == [json!(["maintenance"]), json!([])];
            is_whole.then_some(())
        });
    }
    assert!(a.1.stop().contains("stopped"));
    let is_passed_on = |site: &DataFolder| {
        let leases = listed(&list(site), "leases");
        (leases == [json!([]), json!(["maintenance"])]).then_some(())
    };
    until("the other node has the lease", || is_passed_on(&b.0));
    // Without a server beside it, the command opens the copy, and is no node itself.
    until("the list is the same", || is_passed_on(&a.0));
    b.1.kill();
    let text = b.0.run(&["nodes", "--data", &url]).ok();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("NAME  RELEASE"), "{text}");
    assert!(lines[2].starts_with("b "), "{text}");
}
