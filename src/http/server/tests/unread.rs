//! Bodies that no handler reads: the next request on the connection is served, or the response says that there will be none.

use super::*;

/// Reads one response. Returns its head, in lower case.
async fn head(client: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(TEST_TIMEOUT, client.read_u8()).await.unwrap().unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    timeout(TEST_TIMEOUT, client.read_exact(&mut body)).await.unwrap().unwrap();
    head
}

/// Requests whose bodies of this length stay unread, each with the status of its response.
fn unread(length: usize) -> Vec<(u16, String)> {
    let with = |line: &str, media: &str| {
        format!(
            "{line} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let json = "application/json";
    let mut found = vec![
        (200, with("GET /", json)),
        (404, with("POST /nothing", json)),
        (405, with("DELETE /", json)),
        (415, with("POST /body", "text/plain")),
    ];
    if length > 1024 {
        found.push((413, with("POST /body", json)));
    }
    found
}

#[tokio::test]
async fn request_after_an_unread_body_is_served() {
    let server = start(limits()).await;
    for length in [2, 64 * 1024] {
        for (status, request) in unread(length) {
            let mut client = server.connect().await;
            for _ in 0..2 {
                client.write_all(request.as_bytes()).await.unwrap();
                let answer = head(&mut client).await;
                assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{answer}");
                assert!(!answer.contains("connection: close"), "{answer}");
                // The body comes after the response, and with the next request.
                client.write_all(&[&vec![b'x'; length][..], GET].concat()).await.unwrap();
                answer_until(&mut client, "hello").await;
            }
        }
    }
}

#[tokio::test]
async fn connection_with_a_long_unread_body_is_closed_with_notice() {
    let server = start(limits()).await;
    for (status, request) in unread(64 * 1024 + 1) {
        let mut client = server.connect().await;
        client.write_all(request.as_bytes()).await.unwrap();
        let text = answer(&mut client).await.to_lowercase();
        assert!(text.starts_with(&format!("http/1.1 {status} ")), "{text}");
        assert!(text.contains("connection: close"), "{text}");
    }
}

#[tokio::test]
async fn connection_stays_open_only_if_the_end_of_a_chunked_body_came_with_its_head() {
    let server = start(limits()).await;
    let request =
        "POST /nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
    let mut whole = server.connect().await;
    whole.write_all(format!("{request}0\r\n\r\n").as_bytes()).await.unwrap();
    assert!(!head(&mut whole).await.contains("connection: close"));
    whole.write_all(GET).await.unwrap();
    answer_until(&mut whole, "hello").await;
    let mut part = server.connect().await;
    part.write_all(request.as_bytes()).await.unwrap();
    assert!(answer(&mut part).await.to_lowercase().contains("connection: close"));
}

#[tokio::test]
async fn client_that_waits_for_approval_is_not_asked_for_a_body_that_nobody_reads() {
    let server = start(limits()).await;
    for (status, path, length) in [(404, "/nothing", 2), (413, "/body", 1025)] {
        let mut client = server.connect().await;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let text = answer(&mut client).await.to_lowercase();
        assert!(text.starts_with(&format!("http/1.1 {status} ")), "{text}");
        assert!(text.contains("connection: close"), "{text}");
    }
}

#[tokio::test]
async fn unread_body_that_never_arrives_closes_the_connection() {
    let listener = bind().await;
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    // Sent before the server begins, so that the timeout cannot pass before the request is there.
    client.write_all(unread(2)[0].1.as_bytes()).await.unwrap();
    let limits = ServerLimits { header_timeout: SHORT_TIME, ..limits() };
    let _server = start_on(listener, limits);
    assert!(answer(&mut client).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn connection_whose_unread_body_arrives_gives_way_to_a_new_one() {
    let server = start(ServerLimits { connections: 1, ..limits() }).await;
    let mut first = server.connect().await;
    first.write_all(unread(2)[0].1.as_bytes()).await.unwrap();
    head(&mut first).await;
    first.write_all(b"x").await.unwrap();
    let mut second = server.connect().await;
    assert!(is_closed(&mut first).await);
    second.write_all(GET).await.unwrap();
    answer_until(&mut second, "hello").await;
}

#[tokio::test]
async fn unread_body_that_never_arrives_does_not_delay_the_end_of_the_server() {
    let server = start(limits()).await;
    let mut client = server.connect().await;
    client.write_all(unread(2)[0].1.as_bytes()).await.unwrap();
    head(&mut client).await;
    server.stop.send(()).unwrap();
    assert!(is_closed(&mut client).await);
    drop(client);
    server.task.await.unwrap().unwrap();
}
