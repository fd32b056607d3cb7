//! The accept loop over real sockets.

mod unread;

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::*;
use crate::base::error::Result;
use crate::http::body::{BodyLimits, read_json};
use crate::wait::{TEST_TIMEOUT, eventually_async};

/// A time limit that a test waits for.
const SHORT_TIME: Duration = Duration::from_millis(60);

/// A time limit that no test reaches.
const NEVER: Duration = Duration::from_hours(1);

#[derive(Clone, Default)]
struct TestState {
    /// Notified when a handler of `/slow` begins.
    begun: Arc<Notify>,
    /// Ends a handler of `/slow`.
    finish: Arc<Notify>,
}

async fn count_members(request: Request) -> Result<String> {
    let (parts, body) = request.into_parts();
    let limits = BodyLimits { max_bytes: 1024, timeout: NEVER };
    let sent = read_json(&parts, body, limits).await?;
    Ok(sent.and_then(|sent| Some(sent.as_object()?.len())).unwrap_or(0).to_string())
}

fn router(state: TestState) -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route(
            "/slow",
            get(|State(state): State<TestState>| async move {
                state.begun.notify_one();
                state.finish.notified().await;
                "done"
            }),
        )
        .route("/big", get(|| async { vec![0; 64 << 20] }))
        .route("/body", post(count_members))
        .with_state(state)
}

fn limits() -> ServerLimits {
    ServerLimits {
        header_timeout: NEVER,
        write_timeout: NEVER,
        grace: NEVER,
        ..ServerLimits::default()
    }
}

struct Running {
    address: SocketAddr,
    state: TestState,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

async fn start(limits: ServerLimits) -> Running {
    start_on(bind().await, limits)
}

async fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

fn start_on(listener: TcpListener, limits: ServerLimits) -> Running {
    let state = TestState::default();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = router(state.clone());
    let task = tokio::spawn(async move {
        serve(listener, router, &limits, async { drop(stopped.await) }).await
    });
    Running { address, state, stop, task }
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

/// Reads until the server closes the connection.
async fn answer(client: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _reset = timeout(TEST_TIMEOUT, client.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn is_closed(client: &mut TcpStream) -> bool {
    matches!(timeout(TEST_TIMEOUT, client.read(&mut [0; 1])).await, Ok(Ok(0)))
}

/// Reads one response of a connection that stays open. It must end with `tail`.
async fn answer_until(client: &mut TcpStream, tail: &str) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(tail.as_bytes()) {
        assert_ne!(timeout(TEST_TIMEOUT, client.read_buf(&mut bytes)).await.unwrap().unwrap(), 0);
    }
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

fn post_with(headers: &str, body: &str) -> String {
    let json = "Content-Type: application/json";
    format!("POST /body HTTP/1.1\r\nHost: x\r\n{json}\r\n{headers}\r\n\r\n{body}")
}

#[tokio::test]
async fn idle_connections_close_at_once_on_shutdown() {
    let server = start(limits()).await;
    let mut fresh = server.connect().await;
    let mut kept = server.connect().await;
    kept.write_all(GET).await.unwrap();
    answer_until(&mut kept, "hello").await;
    server.stop.send(()).unwrap();
    assert!(is_closed(&mut kept).await && is_closed(&mut fresh).await);
    drop((kept, fresh));
    server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn active_request_finishes_during_shutdown_and_new_connections_are_refused() {
    let server = start(limits()).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    server.state.begun.notified().await;
    server.stop.send(()).unwrap();
    let refused = async || TcpStream::connect(server.address).await.err();
    eventually_async("a refused connection", refused).await;
    server.state.finish.notify_one();
    let text = answer(&mut client).await;
    assert!(text.contains("connection: close") && text.ends_with("done"), "{text}");
    drop(client);
    server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn connection_limit_of_zero_is_an_error() {
    for none in [
        ServerLimits { connections: 0, ..limits() },
        ServerLimits { connections_per_address: 0, ..limits() },
    ] {
        let served =
            serve(bind().await, router(TestState::default()), &none, std::future::ready(()));
        assert_eq!(served.await.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}

#[tokio::test]
async fn too_many_request_headers_are_rejected_with_431() {
    let server = start(limits()).await;
    let many = |count| "A: b\r\n".repeat(count);
    for headers in [many(101), many(100_000), format!("A: {}\r\n", "b".repeat(40_000))] {
        let mut client = server.connect().await;
        let head = format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        let _ = client.write_all(head.as_bytes()).await;
        assert!(answer(&mut client).await.starts_with("HTTP/1.1 431 "));
    }
    let mut client = server.connect().await;
    let head = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "b".repeat(70_000));
    let _ = client.write_all(head.as_bytes()).await;
    let text = answer(&mut client).await;
    assert!(text.starts_with("HTTP/1.1 414 ") || text.starts_with("HTTP/1.1 431 "), "{text}");
}

#[tokio::test]
async fn client_that_sends_a_too_large_body_still_receives_413() {
    let server = start(limits()).await;
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    for (headers, body) in [
        (format!("Content-Length: {}", 8 << 20), "x".repeat(8 << 20)),
        ("Transfer-Encoding: chunked".to_owned(), chunk.repeat(8) + "0\r\n\r\n"),
    ] {
        let mut client = server.connect().await;
        client.write_all(post_with(&headers, &body).as_bytes()).await.unwrap();
        assert!(answer(&mut client).await.starts_with("HTTP/1.1 413 "));
    }
}

#[tokio::test]
async fn tls_client_that_reads_nothing_is_disconnected() {
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, generated.cert.pem()).unwrap();
    std::fs::write(&key, generated.signing_key.serialize_pem()).unwrap();
    let tls = Arc::new(Tls::load(certificate, key).unwrap());
    let listener = bind().await;
    let address = listener.local_addr().unwrap();
    let limits = ServerLimits { write_timeout: SHORT_TIME, ..limits() };
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        serve_with_tls(Some(tls), listener, router(TestState::default()), &limits, stopped).await
    });
    let mut client =
        connect_tls(generated.cert.der(), TcpStream::connect(address).await.unwrap()).await;
    client.write_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    client.read_exact(&mut [0; 15]).await.unwrap();
    stop.send(()).unwrap();
    // The client is still connected, and the grace period is not over.
    timeout(TEST_TIMEOUT, task).await.unwrap().unwrap().unwrap();
    drop(client);
}

/// Connects over TLS and trusts only this certificate.
async fn connect_tls(
    root: &tokio_rustls::rustls::pki_types::CertificateDer<'static>,
    stream: TcpStream,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), stream).await.unwrap()
}

#[test]
fn accept_loop_backs_off_only_on_its_own_errors() {
    assert!(is_connection_error(&io::ErrorKind::ConnectionAborted.into()));
    assert!(!is_connection_error(&io::Error::from_raw_os_error(24)));
}
