//! Clients that send invalid, huge or slow HTTP. The server ends such requests and continues to serve other clients.

use std::io::ErrorKind;

use crate::prelude::*;

impl Served {
    /// Returns the request line and headers of a request that creates a dashboard.
    fn head(&self, headers: &str) -> String {
        let Self { dashboards, key, .. } = self;
        format!(
            "POST {dashboards} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\n{headers}\r\n"
        )
    }

    /// Asserts that the server is ready and has created no dashboard.
    #[track_caller]
    fn goes_on(self) {
        self.get("/_readyz", "");
        assert_eq!(self.get(&self.dashboards, &self.key).1["count"], 0);
        self.server.stop();
    }

    /// Returns the body of a response, and its connection. A server with a short time limit may close a connection before a
    /// busy machine has sent the request, so this tries again.
    fn get(&self, path: &str, key: &str) -> (Connection, Value) {
        until("the server responds", || {
            let mut connection = self.server.connect();
            let reply = connection.send("GET", path, key, None).ok()?;
            (reply.status == 200).then(|| (connection, reply.json()))
        })
    }
}

#[test]
fn slow_request_headers_close_the_connection() {
    let served = Served::with(&["--header-timeout", "500ms"]);
    for begun in ["", "GET /_li", "GET /_livez HTTP/1.1\r\nHost: x\r\n"] {
        let mut connection = served.server.connect();
        connection.write(begun).unwrap();
        match connection.reply() {
            Ok(reply) => assert_eq!(reply.status, 408),
            Err(error) => assert_ne!(error.kind(), ErrorKind::WouldBlock, "it stays open"),
        }
    }
    assert!(served.get("/_readyz", "").0.is_closed(), "a connection without a next request");
    served.goes_on();
}

#[test]
fn slow_request_body_returns_408() {
    let served = Served::with(&["--body-timeout", "200ms"]);
    for headers in ["Content-Length: 20\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut connection = served.server.connect();
        connection.write(served.head(headers) + "5\r\n").unwrap();
        connection.reply().unwrap().assert_error(408, "invalid_request", "request_timeout");
        assert!(connection.is_closed(), "the rest of the body was read as the next request");
    }
    served.goes_on();
}

#[test]
fn slow_body_without_authorization_is_rejected_at_once_and_a_truncated_body_changes_nothing() {
    let served = Served::with(&[]);
    let mut connection = served.server.connect();
    let head = served.head("Content-Length: 20\r\n").replace("Bearer ", "Bearer x");
    connection.write(head).unwrap();
    assert_eq!(connection.reply().unwrap().status, 401);
    let mut connection = served.server.connect();
    connection.write(served.head("Content-Length: 100\r\n") + "{\"name\": \"A\"}").unwrap();
    drop(connection);
    served.goes_on();
}

#[test]
fn too_large_request_body_returns_413_with_or_without_content_length() {
    let served = Served::with(&["--max-body", "4KiB"]);
    let body = json!({ "name": "x".repeat(5_000) }).to_string();
    let announced = served.head(&format!("Content-Length: {}\r\n", body.len())) + &body;
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let chunked = served.head("Transfer-Encoding: chunked\r\n") + &chunk;
    for request in [announced, chunked, served.head("Content-Length: 99999999999\r\n")] {
        let mut connection = served.server.connect();
        connection.write(request).unwrap();
        connection.reply().unwrap().assert_error(413, "invalid_request", "payload_too_large");
    }
    served.goes_on();
}

#[test]
fn invalid_http_is_rejected() {
    let served = Served::with(&[]);
    let zeros = "\0".repeat(1000);
    let refused = |request: &str| {
        let mut connection = served.server.connect();
        connection.write(request).unwrap();
        let answer = connection.reply().map(|reply| reply.status);
        assert!(!matches!(answer, Ok(200..=399)), "{request:?}: {answer:?}");
        answer.ok()
    };
    assert_eq!(refused("how do you do\r\n\r\n"), Some(400));
    assert_eq!(refused("GET /_livez HTTP/9.9\r\n\r\n"), Some(400));
    assert_eq!(refused("GET /_livez HTTP/1.1\r\nNo Colon\r\n\r\n"), Some(400));
    assert_eq!(refused("GET / _livez HTTP/1.1\r\nHost: x\r\n\r\n"), Some(400));
    assert_eq!(refused(&zeros), Some(400));
    refused("\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03");
    refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let both = "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n";
    let smuggled = served.head(both) + "{}0\r\n\r\nGET /_livez HTTP/1.1\r\nHost: x\r\n\r\n";
    refused(&smuggled);
    refused(&served.head("Content-Length: -1\r\n"));
    refused(&(served.head("Transfer-Encoding: chunked\r\n") + "zz\r\n"));
    served.goes_on();
}
