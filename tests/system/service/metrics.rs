//! The listener of metrics, on the real binary.

use crate::support::metrics::{Numbers, is};
use crate::support::process::{Connection, DataFolder, Reply, until};

/// Returns the response of a listener to `GET path`.
fn ask(address: &str, path: &str) -> Reply {
    let address = address.strip_prefix("http://").unwrap_or(address).parse().expect("an address");
    let mut connection = Connection::open(address).expect("a connection");
    connection.write(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).expect("sent");
    connection.reply().expect("an answer")
}

#[test]
fn metrics_have_their_own_listener() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|on| on.local_addr());
    let address = address.expect("a free port").to_string();
    let server = site.serve(&["--metrics-listen", &address]);
    let mut open = server.connect();
    open.send("GET", "/api/users/@me/", key, None).expect("an answer").ok();
    let reply = ask(&address, "/metrics");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = String::from_utf8(reply.body).expect("text");
    let numbers = Numbers::read(&text);
    assert!(is(numbers.requests("GET", "/api/users/@me/", "2xx"), 1), "{text}");
    assert!(is(numbers.value("steward_http_connections", &[]), 1), "{text}");
    drop(open);
    until("the connection is no longer counted", || {
        let text = String::from_utf8(ask(&address, "/metrics").body).expect("text");
        is(Numbers::read(&text).value("steward_http_connections", &[]), 0).then_some(())
    });
    assert!(!text.contains("phx_") && !text.contains(key));
    for path in ["/", "/api/users/@me/", "/_livez", "/metrics/x"] {
        ask(&address, path).assert_error(404, "invalid_request", "not_found");
    }
    ask(&server.address.to_string(), "/metrics").assert_error(404, "invalid_request", "not_found");
    let taken = server.address.to_string();
    server.stop();
    let twice = ["serve", "--listen", &taken, "--metrics-listen", &taken];
    site.run(&twice).assert_failed(&format!("cannot listen on {taken}"));
    assert_eq!(site.names(), ["steward.redb", "steward.redb.lock"]);
}

#[test]
fn metrics_listener_has_the_limits_of_the_api() {
    let (site, _) = DataFolder::with_workspace();
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|on| on.local_addr());
    let address = address.expect("a free port");
    let flags = ["--header-timeout", "2s", "--connections", "2"];
    let server = site.serve(&[&["--metrics-listen", &address.to_string()], &flags[..]].concat());
    let mut slow = [(); 2].map(|()| Connection::open(address).expect("a connection"));
    for connection in &mut slow {
        connection.write("GET /metrics HT").expect("sent");
    }
    // This connection waits until one of the two slow ones is closed.
    assert_eq!(ask(&address.to_string(), "/metrics").status, 200);
    for connection in &mut slow {
        assert!(connection.is_closed(), "a connection with incomplete headers must be closed");
    }
    let mut connection = Connection::open(address).expect("a connection");
    connection
        .write("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        .expect("sent");
    let reply = connection.reply().expect("an answer");
    reply.assert_error(405, "invalid_request", "method_not_allowed");
    assert_eq!(reply.header("allow"), Some("GET,HEAD"));
    connection = Connection::open(address).expect("a connection");
    connection.write("\0\0\r\n\r\n").expect("sent");
    assert_eq!(connection.reply().expect("an answer").status, 400);
    assert_eq!(server.get("/_livez", "").status, 200);
    server.stop();
}
