//! The listener of metrics, on the real binary.

use std::net::SocketAddr;

use crate::support::metrics::{Numbers, is};
use crate::support::process::{Connection, DataFolder, Reply, own_address, until};

/// Returns the response of a listener to `GET path`.
fn ask(address: SocketAddr, path: &str) -> Reply {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

/// Returns the response of a listener. A server with a short time limit may close a connection before a busy machine has sent
/// the request, so this tries again.
fn send(address: SocketAddr, request: &str) -> Reply {
    until("the listener responds", || {
        let mut connection = Connection::open(address).expect("a connection");
        connection.write(request).and_then(|()| connection.reply()).ok()
    })
}

#[test]
fn metrics_have_their_own_listener() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let address = own_address();
    let server = site.serve(&["--metrics-listen", &address.to_string()]);
    let mut open = server.connect();
    open.send("GET", "/api/users/@me/", key, None).expect("an answer").ok();
    let reply = ask(address, "/metrics");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = String::from_utf8(reply.body).expect("text");
    let numbers = Numbers::read(&text);
    assert!(is(numbers.requests("GET", "/api/users/@me/", "2xx"), 1), "{text}");
    assert!(is(numbers.value("steward_http_connections", &[]), 1), "{text}");
    drop(open);
    until("the connection is no longer counted", || {
        let text = String::from_utf8(ask(address, "/metrics").body).expect("text");
        is(Numbers::read(&text).value("steward_http_connections", &[]), 0).then_some(())
    });
    assert!(!text.contains("phx_") && !text.contains(key));
    for path in ["/", "/api/users/@me/", "/_livez", "/metrics/x"] {
        ask(address, path).assert_error(404, "invalid_request", "not_found");
    }
    ask(server.address, "/metrics").assert_error(404, "invalid_request", "not_found");
    server.stop();
    let taken = own_address().to_string();
    let twice = ["serve", "--listen", &taken, "--metrics-listen", &taken];
    site.run(&twice).assert_failed(&format!("cannot listen on {taken}"));
    assert_eq!(site.names(), ["steward.redb", "steward.redb.lock"]);
}

#[test]
fn metrics_listener_has_the_limits_of_the_api() {
    let (site, _) = DataFolder::with_workspace();
    let address = own_address();
    let flags = ["--header-timeout", "500ms", "--metrics-listen", &address.to_string()];
    let server = site.serve(&flags);
    let mut slow = [(); 2].map(|()| Connection::open(address).expect("a connection"));
    for connection in &mut slow {
        connection.write("GET /metrics HT").expect("sent");
    }
    assert_eq!(ask(address, "/metrics").status, 200);
    for connection in &mut slow {
        assert!(connection.is_closed(), "a connection with incomplete headers must be closed");
    }
    let reply = send(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    reply.assert_error(405, "invalid_request", "method_not_allowed");
    assert_eq!(reply.header("allow"), Some("GET,HEAD"));
    assert_eq!(send(address, "\0\0\r\n\r\n").status, 400);
    assert_eq!(ask(server.address, "/_livez").status, 200);
    server.stop();
}
