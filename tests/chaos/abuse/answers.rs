//! Tests that responses which clients do not read, and requests which clients do not finish, use bounded memory.

use std::io::{Read, Write};
use std::net::TcpStream;

use axum::body::{Body, HttpBody};
use axum::http::Request;
use axum::http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use flate2::read::GzDecoder;
use futures_util::{FutureExt, StreamExt, stream};
use http_body_util::BodyExt;
use steward::testing::http::Peer;
use tower::ServiceExt;

use super::writer::hold;
use crate::prelude::*;
use crate::support::process::TEST_TIMEOUT;

const MIB: usize = 1 << 20;

/// Creates a workspace with this limit on the memory of large responses and requests in flight.
async fn with_memory(transfer_memory: usize) -> Workspace {
    Workspace::configured(|config| config.transfer_memory = transfer_memory).await
}

fn client(last: u8) -> Peer {
    Peer(SocketAddr::from(([192, 0, 2, last], 4000)))
}

/// Returns the response to a request of this client, with an unread body.
async fn ask(workspace: &Workspace, from: Peer, mut request: Request<Body>) -> Response {
    request.extensions_mut().insert(from);
    router(workspace.app.clone()).oneshot(request).await.expect("an answer")
}

fn get(path: &str, key: Option<&str>) -> Request<Body> {
    let request = Request::builder().uri(path);
    let request = match key {
        Some(key) => request.header(AUTHORIZATION, format!("Bearer {key}")),
        None => request,
    };
    request.body(Body::empty()).expect("a request")
}

async fn bytes_of(response: Response) -> Bytes {
    response.into_body().collect().await.expect("a whole body").to_bytes()
}

/// Creates a dashboard of about this many bytes. Returns it and the token of its public page.
async fn heavy(workspace: &Workspace, bytes: usize) -> (Board, String) {
    let board = Board::make(workspace, json!({ "name": "heavy" })).await;
    let tile = json!({ "text": { "body": "words ".repeat(600) } });
    for _ in 0..bytes.div_ceil(360_000) {
        workspace.owner.patch(&board.one, json!({ "tiles": vec![&tile; 100] })).await.ok();
    }
    let token = board.enable(&workspace.owner, true).await;
    (board, token)
}

#[tokio::test]
async fn unread_responses_beyond_a_clients_share_are_rejected() {
    let workspace = with_memory(8 * MIB).await;
    let (board, token) = heavy(&workspace, MIB / 2).await;
    let key = workspace.owner.key.as_deref();
    let size = bytes_of(ask(&workspace, client(1), get(&board.one, key)).await).await.len();
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(ask(&workspace, client(1), get(&board.one, key)).await);
    }
    let served = held.iter().filter(|answer| answer.status() == 200).count();
    assert_eq!(served, 2 * MIB / size, "a client's share is a quarter of the memory");
    let refused = held.pop().expect("an answer");
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &1.into()));
    let body: Value = serde_json::from_slice(&bytes_of(refused).await).expect("an envelope");
    assert_eq!(body["code"], "unavailable");
    assert!(workspace.app.transfer_memory().used() <= 2 * MIB);

    // Small responses, and readers of the public page without a key, are never refused.
    assert_eq!(ask(&workspace, client(1), get("/api/users/@me/", key)).await.status(), 200);
    let page = format!("/shared/{token}.json");
    assert!(bytes_of(ask(&workspace, client(2), get(&page, None)).await).await.len() > 64 * 1024);

    drop(held);
    assert_eq!(workspace.app.transfer_memory().used(), 0);
    assert_eq!(ask(&workspace, client(1), get(&board.one, key)).await.status(), 200);
}

/// Returns a body that sends this text and then stalls.
fn unfinished(text: String) -> Body {
    Body::from_stream(stream::iter([Ok::<_, std::io::Error>(text)]).chain(stream::pending()))
}

fn post(path: &str, key: Option<&str>, body: Body) -> Request<Body> {
    let mut request = get(path, key);
    *request.method_mut() = Method::POST;
    request.headers_mut().insert(CONTENT_TYPE, "application/json".parse().expect("a type"));
    *request.body_mut() = body;
    request
}

#[tokio::test]
async fn unfinished_request_bodies_beyond_the_organizations_share_are_rejected() {
    let workspace = with_memory(8 * MIB).await;
    let (list, key) = (workspace.dashboards(""), workspace.owner.key.clone().expect("a key"));
    workspace.owner.get("/api/users/@me/").await.ok();
    let mut waiting = Vec::new();
    for number in 0..20 {
        let body = unfinished(format!("{{\"name\": \"{}\"", "x".repeat(MIB / 2)));
        let request = post(&list, Some(&key), body);
        let mut answer = Box::pin(ask(&workspace, client(number), request));
        if let Some(refused) = answer.as_mut().now_or_never() {
            assert_eq!(refused.status(), 503);
        } else {
            waiting.push(answer);
        }
    }
    assert!((1..=4).contains(&waiting.len()), "{} of half a MiB in 2 MiB", waiting.len());
    assert!(workspace.app.transfer_memory().used() <= 2 * MIB);
    let created = post(&list, Some(&key), Body::from(r#"{"name": "small"}"#));
    assert_eq!(ask(&workspace, client(1), created).await.status(), 201);
    drop(waiting);
    assert_eq!(workspace.app.transfer_memory().used(), 0);
}

/// Waits until the first use of the owner's key is recorded, so that later requests queue only their own writes.
async fn record_use(workspace: &Workspace) {
    eventually_async("the use is recorded", async || {
        let key = workspace.owner.get("/api/personal_api_keys/@current/").await.ok();
        (!key["last_used_at"].is_null()).then_some(())
    })
    .await;
}

/// Returns how much memory a request takes while it waits for the writer, and its response. Call it after [`record_use`].
async fn charge_in_queue(workspace: &Workspace, mut request: Request<Body>) -> (usize, Response) {
    let (app, store) = (&workspace.app, workspace.app.store());
    let (held, release) = hold(store).await;
    request.extensions_mut().insert(client(1));
    let answer = tokio::spawn(router(app.clone()).oneshot(request));
    eventually("the write waits", || (store.metrics(u64::MAX).queued > 0).then_some(())).await;
    let charge = app.transfer_memory().used();
    drop(release);
    held.await.expect("no panic").expect("released");
    (charge, answer.await.expect("no panic").expect("an answer"))
}

#[tokio::test]
async fn request_body_is_charged_at_its_parsed_size_until_the_response() {
    let workspace = Workspace::new().await;
    let key = workspace.owner.key.clone().expect("a key");
    let list = workspace.dashboards("");
    record_use(&workspace).await;
    let many = |item: &str| format!("[{}]", item.repeat(10_000).trim_end_matches(','));
    for (unknown, least) in [
        (many("{\"\":0},"), 2_000_000),
        (many("0,"), 700_000),
        (many("\"some text of a tile\","), 700_000),
        (dense(4_000), 250_000),
    ] {
        let body = format!("{{\"name\": \"A\", \"unknown\": {unknown}}}");
        let request = post(&list, Some(&key), Body::from(body));
        let (charge, answer) = charge_in_queue(&workspace, request).await;
        assert_eq!(answer.status(), 201);
        assert!(charge > least, "{}: {charge}", &unknown[..9]);
        drop(answer);
        assert_eq!(workspace.app.transfer_memory().used(), 0);
    }
    let sparse = post(&list, Some(&key), Body::from("{\"name\": \"A\"}"));
    let (charge, answer) = charge_in_queue(&workspace, sparse).await;
    assert_eq!((charge, answer.status().as_u16()), (0, 201), "a sparse body is not counted");
}

/// Returns a JSON array of this many bytes that takes a hundred times as much memory when parsed.
fn dense(bytes: usize) -> String {
    format!("[{}[0]]", "[0],".repeat(bytes / 4))
}

#[tokio::test]
async fn request_body_that_parses_to_more_than_a_share_is_rejected_with_413() {
    let workspace = Workspace::new().await;
    let key = workspace.owner.key.clone().expect("a key");
    let (memory, list) = (workspace.app.transfer_memory().clone(), workspace.dashboards(""));
    let post = |body| ask(&workspace, client(1), post(&list, Some(&key), Body::from(body)));
    let refused = post(format!("{{\"a\": {}}}", dense(MIB - 100))).await;
    assert_eq!(refused.status(), 413);
    let body: Value = serde_json::from_slice(&bytes_of(refused).await).expect("an envelope");
    assert_eq!(body["code"], "payload_too_large");
    let detail = "The request body has too many values: parsed, it takes more than 33554432 bytes.";
    assert_eq!(body["detail"], detail);
    assert_eq!(memory.used(), 0);

    // Normal requests are far below the limit, for example the layouts of a thousand tiles.
    let layout = r#"{"id":100000,"layouts":{"sm":{"x":0,"y":100,"w":6,"h":5},"xs":{"x":0,"y":100,"w":1,"h":5}}}"#;
    let tiles = vec![layout; 1000].join(",");
    assert_eq!(post(format!("{{\"name\": \"many\", \"unknown\": [{tiles}]}}")).await.status(), 201);
}

#[tokio::test]
async fn route_that_ignores_its_request_body_reads_little_and_keeps_nothing() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    board.enable(&workspace.owner, true).await;
    let key = workspace.owner.key.clone().expect("a key");
    let refresh = format!("{}sharing/refresh/", board.one);
    let request = |body| post(&refresh, Some(&key), Body::from(body));
    let post = |body| ask(&workspace, client(1), request(body));
    assert_eq!(post(format!("{{\"a\": {}}}", dense(16 * 1024))).await.status(), 413);
    for (body, status) in [("[]", 400), ("{", 400)] {
        let found = post(body.to_owned()).await.status();
        assert_eq!(found, status, "the usual rules for a body apply to it too");
    }
    let ignored = request(format!("{{\"a\": {}}}", dense(16_000)));
    let (charge, answer) = charge_in_queue(&workspace, ignored).await;
    assert_eq!((answer.status().as_u16(), charge), (200, 0));
}

#[tokio::test]
async fn write_is_not_committed_without_memory_for_its_response() {
    let workspace = with_memory(8 * MIB).await;
    let (board, _) = heavy(&workspace, MIB / 2).await;
    let (key, list) = (workspace.owner.key.clone().expect("a key"), workspace.dashboards(""));
    let count = async || workspace.owner.get(&list).await.ok()["count"].clone();
    let mut held = Vec::new();
    loop {
        let answer = ask(&workspace, client(1), get(&board.one, Some(&key))).await;
        if answer.status() == 503 {
            break;
        }
        held.push(answer);
    }
    let before = count().await;
    let copy = json!({ "use_dashboard": board.id }).to_string();
    let copy = || ask(&workspace, client(1), post(&list, Some(&key), Body::from(copy.clone())));
    let refused = copy().await;
    assert_eq!((refused.status().as_u16(), count().await), (503, before.clone()));

    // With memory for the response, the copy succeeds, and its response is counted once.
    held.pop();
    let created = copy().await;
    let size = created.body().size_hint().exact().expect("a length");
    assert_eq!(created.status(), 201);
    assert_ne!(count().await, before);
    let used = workspace.app.transfer_memory().used();
    drop(created);
    let given_back = used - workspace.app.transfer_memory().used();
    assert_eq!(given_back as u64, size);
    drop(held);
    assert_eq!(workspace.app.transfer_memory().used(), 0);
}

#[tokio::test]
async fn unauthenticated_request_body_is_limited_to_16_kib() {
    let workspace = Workspace::new().await;
    let anyone = workspace.anonymous();
    let path = format!("/api/signup/{}/", uuid::Uuid::nil());
    let json = ("content-type", "application/json");
    let once = ("idempotency-key", "1");
    let text = "The request body is larger than 16384 bytes.";
    for headers in [vec![json], vec![json, once]] {
        let body = |bytes: usize| format!("{{\"first_name\": \"{}\"}}", "x".repeat(bytes));
        let large = anyone.fetch(Method::POST, &path, &headers, body(16 * 1024)).await;
        large.assert_error(413, "invalid_request", "payload_too_large", text, None);
        let streamed = Body::from_stream(stream::iter([Ok::<_, std::io::Error>(body(16 * 1024))]));
        assert_eq!(anyone.fetch(Method::POST, &path, &headers, streamed).await.status, 413);
        assert_ne!(anyone.fetch(Method::POST, &path, &headers, body(15 * 1024)).await.status, 413);
        // With a key, the larger limit of the server applies.
        let known = workspace.owner.fetch(Method::POST, &path, &headers, body(16 * 1024)).await;
        assert_ne!(known.status, 413);
    }
}

fn unpacked(gzip: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut plain).expect("gzip");
    plain
}

fn accepting(mut request: Request<Body>, encoding: &str) -> Request<Body> {
    request.headers_mut().insert(ACCEPT_ENCODING, encoding.parse().expect("a value"));
    request
}

#[tokio::test]
async fn vendored_compressed_files_are_sent_unchanged() {
    let workspace = Workspace::new().await;
    for name in ["swagger-ui.css", "swagger-ui-bundle.js"] {
        let path = format!("/api/docs/{name}");
        let vendored = utoipa_swagger_ui::serve(name, Arc::default()).expect("a file");
        let vendored = vendored.expect("there is one").bytes;
        let gzip = ask(&workspace, client(1), accepting(get(&path, None), "gzip")).await;
        assert_eq!(gzip.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(gzip.body().size_hint().exact(), Some(vendored.len() as u64));
        assert!(bytes_of(gzip).await == *vendored);
        let plain = ask(&workspace, client(1), accepting(get(&path, None), "identity")).await;
        assert!(!plain.headers().contains_key(CONTENT_ENCODING));
        assert!(bytes_of(plain).await == unpacked(&vendored));
    }
}

#[tokio::test]
async fn openapi_document_is_compressed_once() {
    let workspace = Workspace::new().await;
    for path in ["/api/schema/", "/api/schema/?format=json"] {
        let plain = bytes_of(ask(&workspace, client(1), get(path, None)).await).await;
        let gzip = || ask(&workspace, client(1), accepting(get(path, None), "gzip"));
        let (first, second) = (gzip().await, gzip().await);
        let length = first.body().size_hint().exact();
        assert!(length.is_some(), "what was compressed before has a known length");
        assert_eq!(length, second.body().size_hint().exact());
        let first = bytes_of(first).await;
        assert!(unpacked(&first) == plain && first == bytes_of(second).await);
    }
}

#[tokio::test]
async fn large_response_is_compressed_off_the_serving_threads() {
    let workspace = Workspace::new().await;
    let (board, _) = heavy(&workspace, MIB).await;
    let key = workspace.owner.key.as_deref();
    let plain = bytes_of(ask(&workspace, client(1), get(&board.one, key)).await).await;
    let gzip = ask(&workspace, client(1), accepting(get(&board.one, key), "gzip")).await;
    assert_eq!(gzip.headers()[CONTENT_ENCODING], "gzip");
    let (mut body, mut packed, mut waits) = (gzip.into_body(), Vec::new(), 0);
    loop {
        let mut next = body.frame();
        let frame = if let Some(ready) = (&mut next).now_or_never() {
            ready
        } else {
            // While another thread compresses the response, this thread serves other requests.
            waits += 1;
            assert_eq!(ask(&workspace, client(2), get("/_livez", None)).await.status(), 200);
            next.await
        };
        let Some(frame) = frame else { break };
        packed.extend_from_slice(&frame.expect("no error").into_data().expect("data"));
    }
    assert!(waits >= plain.len() / MIB, "{waits}");
    assert!(unpacked(&packed) == plain);
    eventually("the memory is released", || {
        (workspace.app.transfer_memory().used() == 0).then_some(())
    })
    .await;
}

/// Requests a page without reading the response.
fn ask_without_reading(last: u8, server: &Server, path: &str) -> TcpStream {
    let from = format!("127.0.0.{last}");
    let mut stream = connect_from(&from, server.address).expect("a connection");
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
    stream.write_all(request("GET", path, "", "", "").as_bytes()).expect("sent");
    stream
}

fn status_of(stream: &TcpStream) -> Option<u16> {
    let mut line = [0; 12];
    until("a status line arrives", || match stream.peek(&mut line) {
        Ok(12) => Some(std::str::from_utf8(&line[9..]).ok()?.parse().ok()),
        Ok(0) | Err(_) => Some(None),
        Ok(_) => None,
    })
}

/// Makes a dashboard public. Returns the token of its page.
pub fn share(server: &Server, one: &str, key: &str) -> String {
    let enabled = json!({ "enabled": true });
    let shared = server.send("PATCH", &format!("{one}sharing/"), key, Some(&enabled)).ok();
    shared["access_token"].as_str().expect("a token").to_owned()
}

/// Creates a shared dashboard with many copies of `tile`, in several requests. Returns its id and the token of its
/// public page.
pub fn shared_dashboard(
    server: &Server,
    (list, key): (&str, &str),
    tile: &Value,
    (parts, tiles): (usize, usize),
) -> (u64, String) {
    let made = server.post(list, key, &json!({ "name": "shared" })).ok();
    let id = made["id"].as_u64().expect("an id");
    let one = format!("{list}{id}/");
    for _ in 0..parts {
        server.send("PATCH", &one, key, Some(&json!({ "tiles": vec![tile; tiles] }))).ok();
    }
    (id, share(server, &one, key))
}

#[test]
fn many_clients_that_never_read_do_not_block_the_service() {
    let Served { site: _site, server, key, dashboards: list } = Served::with(&[]);
    // Each character has four bytes.
    let tile = json!({ "text": { "body": "\u{1f9f1}".repeat(3_990) } });
    let (id, token) = shared_dashboard(&server, (&list, &key), &tile, (9, 55));
    let page = format!("/shared/{token}.json");
    let small = server.get("/api/users/@me/", &key).ok();
    let before = server.memory("VmRSS:");

    // Uses four addresses, so that the limit on connections per address does not apply first.
    let unread: Vec<_> =
        (2..6).cycle().take(300).map(|from| ask_without_reading(from, &server, &page)).collect();
    let statuses: Vec<_> = unread.iter().map(status_of).collect();
    let count = |status| statuses.iter().filter(|found| **found == Some(status)).count();
    assert!(count(200) >= 1, "{statuses:?}");
    assert!(count(503) > count(200), "{statuses:?}");
    let most = server.memory("VmHWM:");
    let (most_mib, before_mib) = (most / MIB, before / MIB);
    println!("{} of 300 served, {most_mib} MiB at most, {before_mib} before", count(200));
    assert!(most < 512 * MIB, "{most_mib} MiB");

    // Other clients are served in the meantime, with a key and without one.
    assert_eq!(server.get("/api/users/@me/", &key).ok(), small);
    let whole = server.get(&format!("{list}{id}/"), &key);
    assert!(whole.status == 200 && whole.body.len() > 7 * MIB, "{}", whole.status);
    let public = server.get(&page, "");
    assert!(public.status == 200 && public.body.len() > 7 * MIB, "{}", public.status);

    drop(unread);
    // The memory and the address's share are released.
    until("the address is served again", || {
        let stream = ask_without_reading(2, &server, &page);
        (status_of(&stream) == Some(200)).then_some(())
    });
    until("the memory is released", || {
        let now = server.memory("VmRSS:");
        (now < before + (most - before) / 2 + 64 * MIB).then_some(())
    });
    let log = server.stop();
    let of_memory = || log.lines().filter(|line| line.contains("share of the transfer memory"));
    let warnings = of_memory().filter(|line| line.contains("\"WARN\"")).count();
    assert!((1..count(503)).contains(&warnings), "{warnings} lines");
    assert_eq!(of_memory().count(), warnings, "a refusal beyond a share is no error: {log}");
}

/// Resets the peak memory in `/proc/PID/status`.
fn forget_peak(server: &Server) {
    let path = format!("/proc/{}/clear_refs", server.pid().as_raw_nonzero());
    std::fs::write(path, "5").expect("it runs");
}

/// Tests layouts with few bytes per value. Parsed at once, they take a hundred times the memory of the response.
#[test]
fn dense_dashboard_uses_memory_proportional_to_its_response() {
    let Served { site: _site, server, key, dashboards: list } = Served::with(&[]);
    let layouts: Value = serde_json::from_str(&dense(32_000)).expect("JSON");
    let tile = json!({ "text": { "body": "x" }, "layouts": { "q": { "a": layouts } } });
    let (id, token) = shared_dashboard(&server, (&list, &key), &tile, (10, 5));
    let one = format!("{list}{id}/");
    let json = format!("/shared/{token}.json");
    let answer = server.get(&json, "").body.len();
    assert!(answer > MIB, "{answer}");
    let peak = |what: &str, act: &dyn Fn()| {
        let before = server.memory("VmRSS:");
        forget_peak(&server);
        act();
        let growth = server.memory("VmHWM:").saturating_sub(before);
        println!("{what}: {} KiB more for an answer of {} KiB", growth / 1024, answer / 1024);
        assert!(growth < 16 * answer, "{what}: {} MiB", growth / MIB);
    };
    server.send("PATCH", &one, &key, Some(&json!({ "name": "again" }))).ok();
    peak("JSON", &|| assert_eq!(server.get(&json, "").status, 200));
    peak("HTML", &|| assert_eq!(server.get(&format!("/shared/{token}"), "").status, 200));
    let shown = server.get(&one, &key).ok();
    let tiles = shown["tiles"].as_array().expect("tiles").iter();
    let emptied: Vec<_> = tiles.map(|tile| json!({ "id": tile["id"], "layouts": {} })).collect();
    for change in
        [json!({ "deleted": true }), json!({ "deleted": false }), json!({ "tiles": emptied })]
    {
        peak("change", &|| drop(server.send("PATCH", &one, &key, Some(&change)).ok()));
    }
}
