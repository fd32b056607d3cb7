//! Several nodes of one shared database: kills, freezes, cuts, failovers and partitions. Also one server on a data file,
//! under the same load.
//!
//! `cargo test --test chaos nodes::` runs them. They need PostgreSQL. `STEWARD_BIN` selects another binary.

mod control;
mod failover;
mod frozen;
mod full_disks;
pub mod load;
mod partitions;
mod torture;

use crate::prelude::*;
use crate::support::process::{Reply, all_rows, binary, cleared};

/// The first lines of `pg_hba.conf`: the role of the tests needs no password.
const HBA: &str = "local all steward trust";

/// Nodes of one workspace, each with a process and a folder of its own.
pub struct Cluster {
    pub nodes: Vec<Node>,
    /// The API key of the first start.
    pub key: String,
    /// The path of the dashboards of its project.
    pub dashboards: String,
}

/// A process that serves the workspace, and is killed and started again.
pub struct Node {
    pub folder: DataFolder,
    /// The URL of the database, or the name of the data file.
    data: String,
    /// Further arguments of `serve`.
    args: Vec<String>,
    server: Mutex<Option<Server>>,
    address: Mutex<SocketAddr>,
}

/// How a request ended.
enum Answer {
    Reply(Reply),
    /// The node accepted no connection, so nothing was done.
    Refused,
    /// The connection ended before the response: the request may have been carried out.
    Cut,
}

impl Node {
    /// Starts a node. The first one founds the workspace.
    fn start(data: String, args: &[&str], is_first: bool) -> Self {
        let folder = DataFolder::empty();
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let first = if is_first { vec!["--found".to_owned()] } else { Vec::new() };
        let server = serve(&folder, &data, &[&args[..], &first].concat());
        let address = Mutex::new(server.address);
        Self { folder, data, args, server: Mutex::new(Some(server)), address }
    }

    fn address(&self) -> SocketAddr {
        *self.address.lock().unwrap()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&self) {
        self.server.lock().unwrap().take().expect("a running node").kill();
    }

    /// Starts another process after a [`kill`](Self::kill).
    pub fn restart(&self) {
        let server = serve(&self.folder, &self.data, &self.args);
        *self.address.lock().unwrap() = server.address;
        *self.server.lock().unwrap() = Some(server);
    }

    /// Runs a command in the folder of the node. Returns its output.
    fn run(&self, command: &str) -> Value {
        let mut run = cleared(binary());
        CommandOutput::new(run.current_dir(self.folder.folder()).args([command, "--json"])).json()
    }

    fn signal(&self, signal: Signal) {
        self.server.lock().unwrap().as_ref().expect("a running node").signal(signal);
    }

    /// Sends a request on `connection`, which is opened if there is none.
    fn send(&self, connection: &mut Option<Connection>, request: &str) -> Answer {
        if connection.is_none() {
            *connection = Connection::open(self.address()).ok();
        }
        let Some(open) = connection else { return Answer::Refused };
        let Ok(reply) = open.write(request).and_then(|()| open.reply()) else {
            *connection = None;
            return Answer::Cut;
        };
        Answer::Reply(reply)
    }
}

fn serve(folder: &DataFolder, data: &str, args: &[String]) -> Server {
    let mut command = cleared(binary());
    command.current_dir(folder.folder());
    command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--data", data]);
    command.args(["--max-dashboards", "1000000"]).args(args);
    Server::start(&mut command).unwrap_or_else(|run| panic!("the node does not start: {run:?}"))
}

impl Cluster {
    /// Starts a node for each of these URLs of one database. The first one founds the workspace.
    fn start(urls: impl IntoIterator<Item = String>) -> Self {
        Self::with(urls, &[])
    }

    /// Starts one server on a new data file.
    pub fn on_file() -> Self {
        Self::start(["steward.redb".to_owned()])
    }

    /// Does what [`start`](Self::start) does, with these further arguments of `serve`.
    fn with(urls: impl IntoIterator<Item = String>, args: &[&str]) -> Self {
        let urls = urls.into_iter().enumerate();
        let nodes: Vec<_> = urls.map(|(at, url)| Node::start(url, args, at == 0)).collect();
        let folder = &nodes[0].folder;
        let mut names = folder.names().into_iter();
        let file = names.find(|name| name.ends_with(".first-key")).expect("the file of the key");
        let key = std::fs::read_to_string(folder.path(&file)).expect("a key");
        let key = key.trim_end().to_owned();
        let mut connection = Connection::open(nodes[0].address()).expect("a connection");
        let projects = connection.send("GET", "/api/projects/", &key, None).expect("a response");
        let project = &projects.ok()["results"][0]["id"];
        Self { dashboards: format!("/api/projects/{project}/dashboards/"), nodes, key }
    }

    /// Returns a request with these further header lines, each with its line end.
    fn request(&self, method: &str, path: &str, headers: &str, body: Option<&Value>) -> String {
        let body = body.map_or_else(String::new, Value::to_string);
        request(method, path, &self.key, headers, &body)
    }

    /// Sends a request to the node, again while it responds with 503 or cannot be reached. A POST is done once nevertheless.
    /// Panics if the node never responds.
    fn ask(&self, node: usize, method: &str, path: &str, body: Option<&Value>) -> Reply {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let once = format!("Idempotency-Key: {}\r\n", ASKED.fetch_add(1, Ordering::Relaxed));
        let request = self.request(method, path, if method == "POST" { &once } else { "" }, body);
        let mut connection = None;
        until(&format!("node {node} responds"), || {
            match self.nodes[node].send(&mut connection, &request) {
                // 409: the node still carries out the same request.
                Answer::Reply(reply) if ![409, 503].contains(&reply.status) => Some(reply),
                _ => None,
            }
        })
    }

    /// Returns all dashboards, read page by page, and their number as the last page says.
    fn rows(&self, node: usize) -> (Vec<Value>, u64) {
        all_rows(&self.dashboards, |path| self.ask(node, "GET", path, None).ok())
    }

    /// Returns the ids and names of all dashboards, and their number as the last page says.
    pub fn list(&self, node: usize) -> (Vec<(u64, String)>, u64) {
        let (rows, count) = self.rows(node);
        (rows.iter().map(id_and_name).collect(), count)
    }

    /// Asserts that every node is ready, and that its file is valid and equals the database, if there is one.
    pub fn check(&self) {
        for (at, node) in self.nodes.iter().enumerate() {
            assert_eq!(self.ask(at, "GET", "/_readyz", None).status, 200);
            assert_eq!(node.run("check")["problem_count"], 0, "node {at}");
        }
    }
}

/// Returns a server that syncs its commits, and an empty schema in it.
fn database() -> (Schema, Postgres) {
    let postgres = Postgres::start(&["fsync = on"], HBA);
    let schema = Schema::on(&postgres.url(ROLE));
    (schema, postgres)
}
