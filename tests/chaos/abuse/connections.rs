//! Tests that one address cannot use up the connections of others.

use std::io::Read;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixStream;

use rustix::process::geteuid;

use crate::prelude::*;
use crate::support::process::own_address;

/// The addresses of an attacker, a victim and another client.
const ATTACKER: &str = "127.0.0.2";
const VICTIM: &str = "127.0.0.3";
const NEWCOMER: &str = "127.0.0.4";

impl Served {
    /// Opens a connection from this address.
    fn connect_from(&self, address: &str) -> Connection {
        let stream = connect_from(address, self.server.address).expect("a connection");
        Connection::of(stream).expect("a connection")
    }

    /// Opens connections one after another, each with one completed request, and leaves them idle.
    fn idle_from(&self, address: &str, count: usize) -> Vec<Connection> {
        let idle = (0..count).map(|_| {
            let mut connection = self.connect_from(address);
            is_served(&mut connection);
            connection
        });
        idle.collect()
    }

    /// Opens a connection with an unfinished request: the server waits for its body.
    fn busy_from(&self, address: &str) -> Connection {
        let mut connection = self.connect_from(address);
        connection.begin(&self.dashboards, &self.key, BODY.len());
        connection
    }

    /// Returns the number of dashboards that a victim sees.
    fn count(&self) -> Value {
        let mut victim = self.connect_from(VICTIM);
        let list = victim.send("GET", &self.dashboards, &self.key, None).expect("an answer");
        list.ok()["count"].clone()
    }
}

const BODY: &str = r#"{"name": "A"}"#;

#[track_caller]
fn is_served(connection: &mut Connection) {
    assert_eq!(connection.send("GET", "/_livez", "", None).expect("an answer").status, 200);
}

#[test]
fn idle_connections_of_one_address_do_not_block_others() {
    let served = Served::with(&["--connections", "32", "--connections-per-address", "8"]);
    let mut idle = served.idle_from(ATTACKER, 40);
    assert_eq!(served.count(), 0);
    assert_eq!(served.server.get("/_livez", "").status, 200, "a health probe must be served");
    until("32 of 40 connections are closed", || {
        (idle.iter().filter(|connection| connection.is_closed_now()).count() >= 32).then_some(())
    });
    idle.retain(|connection| !connection.is_closed_now());
    assert_eq!(idle.len(), 8);
    idle.iter_mut().for_each(is_served);
    // The same limit holds for connections without a request. Those that have been open longest are closed.
    let mut silent: Vec<_> = (0..12).map(|_| served.connect_from(NEWCOMER)).collect();
    for connection in &mut silent[..4] {
        assert!(connection.is_closed());
    }
    assert!(silent[4..].iter().all(|connection| !connection.is_closed_now()));
    served.server.stop();
}

#[test]
fn largest_address_loses_connections_when_all_slots_are_used() {
    let served = Served::with(&["--connections", "16", "--connections-per-address", "12"]);
    let mut modest = served.idle_from(VICTIM, 4);
    let mut greedy = served.idle_from(ATTACKER, 12);
    let newcomers = served.idle_from(NEWCOMER, 4);
    until("four connections are closed", || {
        (greedy.iter().filter(|connection| connection.is_closed_now()).count() >= 4).then_some(())
    });
    greedy.retain(|connection| !connection.is_closed_now());
    assert_eq!(greedy.len(), 8);
    modest.iter_mut().chain(&mut greedy).for_each(is_served);
    drop(newcomers);
    served.server.stop();
}

#[test]
fn active_requests_are_never_aborted_for_new_connections() {
    const REFUSED: usize = 200;
    let served = Served::with(&["--connections", "4", "--connections-per-address", "4"]);
    let busy: Vec<_> = (0..4).map(|_| served.busy_from(ATTACKER)).collect();
    for _ in 0..REFUSED {
        assert!(served.connect_from(ATTACKER).is_closed(), "it exceeds the share of its address");
    }
    let own = served.server.get("/_livez", "").status;
    assert_eq!(own, 200, "slots are reserved for loopback addresses");
    for mut connection in busy {
        connection.write(BODY).expect("sent");
        assert_eq!(connection.reply().expect("an answer").status, 201);
    }
    assert_eq!(served.count(), 4);
    let log = served.server.stop();
    let lines = log.matches("connections were refused").count();
    assert!((1..REFUSED).contains(&lines), "{lines} log lines for {REFUSED} refusals");
}

#[test]
fn refused_and_closed_connections_are_counted_in_metrics() {
    let numbers = own_address();
    let flags = ["--metrics-listen", &numbers.to_string(), "--connections-per-address", "2"];
    let served = Served::with(&flags);
    let _idle = served.idle_from(ATTACKER, 5);
    let _busy = [served.busy_from(NEWCOMER), served.busy_from(NEWCOMER)];
    for _ in 0..3 {
        assert!(served.connect_from(NEWCOMER).is_closed());
    }
    until("three connections of each kind are counted", || {
        let mut connection = Connection::open(numbers).expect("open");
        connection.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        let text = String::from_utf8(connection.reply().expect("an answer").body).expect("text");
        let lines = ["http_connections_closed_total 3", "http_connections_refused_total 3"];
        lines.iter().all(|line| text.contains(&format!("steward_{line}\n"))).then_some(())
    });
}

#[test]
fn connection_closes_after_its_maximum_age() {
    let served = Served::with(&["--connection-age", "50ms"]);
    let mut connection = served.connect_from(VICTIM);
    until("a response closes the connection", || {
        let reply = connection.send("GET", "/_livez", "", None).expect("an answer");
        assert_eq!(reply.status, 200);
        (reply.header("connection") == Some("close")).then_some(())
    });
    assert!(connection.is_closed());
    served.server.stop();
}

#[test]
fn request_requires_exactly_one_valid_host() {
    let served = Served::with(&[]);
    let refused = [
        "GET /_livez HTTP/1.1\r\n\r\n",
        "GET http://a/_livez HTTP/1.1\r\n\r\n",
        "GET /_livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /_livez HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
        "GET /_livez HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /_livez HTTP/1.1\r\nHost:\r\n\r\n",
        "GET /_livez HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET /_livez HTTP/1.1\r\nHost: user@a\r\n\r\n",
        "GET /_livez HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET /_livez HTTP/1.1\r\nHost: a:99999\r\n\r\n",
    ];
    for request in refused {
        let mut connection = served.server.connect();
        connection
            .write(format!("{request}GET /_livez HTTP/1.1\r\nHost: a\r\n\r\n"))
            .expect("sent");
        let reply = connection.reply().expect("an answer");
        reply.assert_error(400, "invalid_request", "invalid_host");
        assert!(reply.header("x-request-id").is_some(), "{request:?}");
        assert!(connection.is_closed(), "the next request must not be read: {request:?}");
    }
    for request in [
        "GET /_livez HTTP/1.0\r\n\r\n",
        "GET /_livez HTTP/1.0\r\nHost: a\r\n\r\n",
        "GET /_livez HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n",
        "GET http://a/_livez HTTP/1.1\r\nHost: b\r\n\r\n",
    ] {
        let mut connection = served.server.connect();
        connection.write(request).expect("sent");
        assert_eq!(connection.reply().expect("an answer").status, 200, "{request:?}");
        assert!(!request.contains("HTTP/1.0") || connection.is_closed(), "{request:?}");
    }
    served.server.stop();
}

#[test]
fn conflicting_content_lengths_are_rejected() {
    let served = Served::with(&[]);
    let send = |headers: &str| {
        let mut connection = served.server.connect();
        let request = format!("GET /_livez HTTP/1.1\r\nHost: a\r\n{headers}\r\n{{}}");
        connection.write(request + "GET /_readyz HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        let status = connection.reply().expect("an answer").status;
        (status, connection.reply().map(|reply| reply.status).ok())
    };
    assert_eq!(send("Content-Length: 2\r\n"), (200, Some(200)));
    assert_eq!(send("Content-Length: 2\r\nContent-Length: 2\r\n"), (200, Some(200)));
    assert_eq!(send("Content-Length: 2\r\nContent-Length: 40\r\n"), (400, None));
    assert_eq!(send("Content-Length: 2, 40\r\n"), (400, None));
    assert_eq!(send("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), (400, None));
    served.server.stop();
}

#[test]
fn silent_control_connections_do_not_block_commands() {
    let served = Served::with(&[]);
    let path = served.site.path("steward.redb.sock");
    let mut silent: Vec<_> =
        (0..64).map(|_| UnixStream::connect(&path).expect("a connection")).collect();
    assert_eq!(served.site.json(&["healthcheck"])["ready"], json!(true));
    for connection in &mut silent[..48] {
        assert_eq!(connection.read(&mut [0]).expect("the end"), 0);
    }
    served.server.stop();
}

/// Returns the path of a data file that is too long for a socket beside it.
fn far_away(site: &DataFolder) -> String {
    let folder = site.path(&"long".repeat(30));
    fs::create_dir(&folder).expect("a folder");
    folder.join("steward.redb").to_str().expect("a path").to_owned()
}

#[test]
fn control_socket_directory_with_unsafe_permissions_is_rejected() {
    let site = DataFolder::empty();
    let data = far_away(&site);
    let private = site.create_folder("private", 0o700);
    let (open, theirs) = (site.create_folder("open", 0o770), site.create_folder("theirs", 0o700));
    let (link, file) = (site.path("link"), site.path("file"));
    symlink(&private, &link).expect("a link");
    fs::write(&file, "").expect("a file");
    let mut planted =
        vec![(&link, "is a symbolic link"), (&file, "is not a folder"), (&open, "mode 0770")];
    // Only root can change the owner.
    if chown(&theirs, Some(65_534), None).is_ok() {
        planted.push((&theirs, "belongs to user 65534"));
    }
    let serve = |runtime: &Path| {
        let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0", "--data", &data]);
        Server::start(command.env("XDG_RUNTIME_DIR", runtime))
    };
    for (folder, problem) in &planted {
        let Err(run) = serve(folder) else { panic!("the server accepted {}", folder.display()) };
        assert!(run.code == Some(1) && run.stderr.contains(problem), "{run:?}");
    }
    let server = serve(&private).expect("a private folder will do");
    for (folder, problem) in &planted {
        let mut command = site.steward(&["user", "list", "--data", &data]);
        CommandOutput::new(command.env("XDG_RUNTIME_DIR", folder)).assert_failed(problem);
    }
    server.stop();
}

#[test]
fn planted_symbolic_link_in_the_shared_directory_is_rejected() {
    let site = DataFolder::empty();
    let (data, shared) = (far_away(&site), site.path("tmp"));
    fs::create_dir(&shared).expect("a folder");
    let theirs = site.path("theirs");
    symlink(&theirs, shared.join(format!("steward-{}", geteuid().as_raw()))).expect("a link");
    let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    let Err(run) = Server::start(command.env("TMPDIR", &shared)) else {
        panic!("the server started")
    };
    assert!(run.stderr.contains("is a symbolic link"), "{run:?}");
    assert!(!theirs.exists(), "nothing is created behind the link");
}

#[test]
fn lock_file_that_is_a_link_or_pipe_is_rejected() {
    let (site, _) = DataFolder::with_workspace();
    let (lock, target) = (site.path("steward.redb.lock"), site.path("theirs"));
    fs::remove_file(&lock).expect("removed");
    symlink(&target, &lock).expect("a link");
    site.run(&["user", "list"]).assert_failed("steward.redb.lock: it is a symbolic link");
    assert!(!target.exists(), "nothing is created behind the link");
    fs::remove_file(&lock).expect("removed");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a pipe");
    site.run(&["user", "list"]).assert_failed("steward.redb.lock");
    fs::remove_file(&lock).expect("removed");
    assert_eq!(site.json(&["user", "list"])["results"].as_array().expect("users").len(), 1);
}
