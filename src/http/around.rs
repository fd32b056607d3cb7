//! What happens around every request, in one layer: its id, time limit, panics and log line.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tower::{Layer, Service};
use uuid::{Builder, Uuid};

use super::client::{self, TrustedProxies};
use crate::error::Error;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request that takes longer is worth a warning.
const SLOW: Duration = Duration::from_secs(1);

/// The status in the log, and only there, of a request whose client went away before its answer
/// (nginx's number for it).
const CLIENT_GONE: u16 = 499;

/// The outermost layer: `Router::layer(Around::new(..))`, after all routes and the fallback.
///
/// It answers every request with its `X-Request-Id` (the client's own where that is 1 to 128 of
/// `[A-Za-z0-9._-]`, else a new version 7 UUID), turns a panic into a 500 and an overrun of its
/// time into a 503, and logs one line a request: an error for 5xx, a warning for what takes more
/// than a second, debug for all else. A line never holds a body, a header (but the id), a raw path
/// or a query.
#[derive(Clone)]
pub struct Around(Arc<Shared>);

struct Shared {
    timeout: Duration,
    proxies: TrustedProxies,
    ids: Ids,
}

impl Around {
    /// `timeout` bounds the time from a request's head to its response's head, so it should exceed
    /// the time that a body has; `proxies` are those whose word on the client's address is logged.
    #[must_use]
    pub fn new(timeout: Duration, proxies: TrustedProxies) -> Self {
        Self(Arc::new(Shared { timeout, proxies, ids: Ids::default() }))
    }
}

impl<S> Layer<S> for Around {
    type Service = Surrounded<S>;

    fn layer(&self, inner: S) -> Surrounded<S> {
        Surrounded { inner, shared: Arc::clone(&self.0) }
    }
}

/// A service within [`Around`].
#[derive(Clone)]
pub struct Surrounded<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request> for Surrounded<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let mut line = Line::of(&request, &self.shared);
        let timeout = self.shared.timeout;
        // axum's `Route` only builds a future here: what can panic runs when that is polled.
        let answer = AssertUnwindSafe(self.inner.call(request)).catch_unwind();
        Box::pin(async move {
            let mut response = match tokio::time::timeout(timeout, answer).await {
                Ok(Ok(Ok(response))) => response,
                Ok(Ok(Err(never))) => match never {},
                Ok(Err(panic)) => Error::internal(panic_text(&*panic)).into_response(),
                Err(_) => too_slow(timeout).into_response(),
            };
            line.status = response.status().as_u16();
            line.error = response.extensions_mut().remove();
            response.headers_mut().insert(REQUEST_ID, line.id.to_header());
            Ok(response)
        })
    }
}

fn too_slow(timeout: Duration) -> Error {
    Error::unavailable(1, format_args!("no answer within {timeout:?}"))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("no text"))
}

/// A request's line in the log, written when it is dropped: so it is written once, and also for a
/// request whose client goes away, which drops the response's future.
struct Line {
    id: RequestId,
    method: Method,
    route: Option<MatchedPath>,
    client: IpAddr,
    start: Instant,
    status: u16,
    error: Option<Error>,
}

impl Line {
    fn of(request: &Request, shared: &Shared) -> Self {
        Self {
            id: RequestId::of(request, &shared.ids),
            method: request.method().clone(),
            route: request.extensions().get().cloned(),
            client: client::address(request.extensions(), request.headers(), &shared.proxies),
            start: Instant::now(),
            status: CLIENT_GONE,
            error: None,
        }
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("unmatched", MatchedPath::as_str)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let took = self.start.elapsed();
        // The fields are worked out only where the level is enabled.
        macro_rules! line {
            ($level:ident, $text:literal $(, $name:ident = $value:expr)?) => {
                tracing::$level!(
                    request_id = %self.id,
                    method = %self.method,
                    route = self.route(),
                    status = self.status,
                    duration_ms = took.as_secs_f64() * 1000.0,
                    client = %self.client,
                    $($name = $value,)?
                    $text
                )
            };
        }
        if self.status >= 500 {
            let cause = self.error.as_ref().and_then(Error::cause);
            line!(error, "request failed", error = cause);
        } else if took > SLOW {
            line!(warn, "slow request");
        } else {
            line!(debug, "request");
        }
    }
}

/// What a client quotes and an operator looks for.
enum RequestId {
    Sent(HeaderValue),
    Made(Uuid),
}

impl RequestId {
    fn of(request: &Request, ids: &Ids) -> Self {
        match request.headers().get(REQUEST_ID) {
            Some(sent) if is_request_id(sent.as_bytes()) => Self::Sent(sent.clone()),
            _ => Self::Made(ids.make()),
        }
    }

    fn to_header(&self) -> HeaderValue {
        match self {
            Self::Sent(value) => value.clone(),
            Self::Made(id) => {
                let mut buffer = Uuid::encode_buffer();
                let text = id.as_hyphenated().encode_lower(&mut buffer);
                HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
            }
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(value) => f.write_str(value.to_str().unwrap_or_default()),
            Self::Made(id) => id.fmt(f),
        }
    }
}

fn is_request_id(value: &[u8]) -> bool {
    (1..=128).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

/// Makes version 7 UUIDs from a keyed hash of a counter. `Uuid::now_v7` makes a system call for its
/// randomness, which costs as much as all else in this layer. Never for anything that must be secret.
#[derive(Default)]
struct Ids {
    key: RandomState,
    count: AtomicU64,
}

impl Ids {
    fn make(&self) -> Uuid {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let low = self.key.hash_one((count, 0_u8)).to_be_bytes();
        let high = self.key.hash_one((count, 1_u8)).to_be_bytes();
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or_default();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&low);
        random[8..].copy_from_slice(&high[..2]);
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::SocketAddr;

    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use serde_json::Value;
    use tower::ServiceExt;

    use super::*;
    use crate::http::client::Peer;
    use crate::http::logging::tests::Kept;

    const LIMIT: Duration = Duration::from_millis(50);

    fn router() -> Router {
        Router::new()
            .route("/things/{id}", get(|| async { "ok" }))
            .route("/panic", get(|| async { panic!("no {}", 7) as () }))
            .route("/refused", get(|| async { Error::not_found() }))
            .route("/broken", get(|| async { Error::internal("bad page") }))
            .route("/stuck", get(std::future::pending::<()>))
            .layer(Around::new(LIMIT, TrustedProxies::default()))
    }

    fn request(path: &str) -> Request {
        Request::builder().uri(path).body(Body::empty()).unwrap()
    }

    fn id_of(response: &Response) -> &str {
        response.headers()[REQUEST_ID].to_str().unwrap()
    }

    async fn body_of(response: Response) -> Value {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The lines that `level` shows while `work` runs.
    async fn logged(level: tracing::Level, work: impl Future) -> Vec<Value> {
        let kept = Kept::default();
        let log = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(level)
            .with_writer(kept.writer())
            .finish();
        let guard = tracing::subscriber::set_default(log);
        work.await;
        drop(guard);
        kept.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn a_clients_own_request_id_comes_back() {
        for own in ["a", "A.b_c-9", &"x".repeat(128)] {
            let mut request = request("/things/1");
            request.headers_mut().insert(REQUEST_ID, own.parse().unwrap());
            assert_eq!(id_of(&router().oneshot(request).await.unwrap()), own);
        }
    }

    #[tokio::test]
    async fn a_bad_or_missing_request_id_is_replaced_by_a_uuid_of_version_7() {
        for bad in ["", "a b", "a/b", "é", &"x".repeat(129)] {
            let mut request = request("/nowhere");
            let value = HeaderValue::from_bytes(bad.as_bytes()).unwrap();
            request.headers_mut().insert(REQUEST_ID, value);
            let response = router().oneshot(request).await.unwrap();
            let id = Uuid::parse_str(id_of(&response)).unwrap();
            assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
        }
        let response = router().oneshot(request("/things/1")).await.unwrap();
        assert!(Uuid::parse_str(id_of(&response)).is_ok());
    }

    #[test]
    fn made_ids_are_unique_and_carry_the_time() {
        let ids = Ids::default();
        let made: HashSet<_> = (0..1000).map(|_| ids.make()).collect();
        assert_eq!(made.len(), 1000);
        let (seconds, _) = ids.make().get_timestamp().unwrap().to_unix();
        assert!(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() - seconds < 5);
    }

    #[tokio::test]
    async fn a_panic_is_a_500_without_its_text_and_one_line_with_it() {
        let mut answer = None;
        let lines = logged(tracing::Level::DEBUG, async {
            answer = router().oneshot(request("/panic")).await.ok();
        })
        .await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 500);
        let id = id_of(&answer).to_owned();
        let body = body_of(answer).await;
        assert_eq!(body["detail"], "A server error occurred.");
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line = &lines[0];
        assert_eq!((&line["level"], &line["status"]), (&"ERROR".into(), &500.into()));
        assert_eq!((&line["error"], &line["route"]), (&"panic: no 7".into(), &"/panic".into()));
        assert_eq!(line["request_id"], id);
    }

    #[tokio::test]
    async fn a_request_that_takes_too_long_is_a_503() {
        let response = router().oneshot(request("/stuck")).await.unwrap();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
        assert!(response.headers().contains_key(REQUEST_ID));
        assert_eq!(body_of(response).await["code"], "unavailable");
    }

    #[tokio::test]
    async fn a_line_shows_the_template_and_never_path_or_query() {
        let lines = logged(tracing::Level::DEBUG, async {
            let mut asked = request("/things/secret?key=secret");
            asked.extensions_mut().insert(Peer(SocketAddr::from(([192, 0, 2, 7], 1))));
            let _ = router().oneshot(asked).await;
            let _ = router().oneshot(request("/secret")).await;
        })
        .await;
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["route"], "/things/{id}");
        assert_eq!(lines[0]["method"], "GET");
        assert_eq!(lines[0]["client"], "192.0.2.7");
        assert!(lines[0]["duration_ms"].is_f64());
        assert_eq!(lines[0].get("error"), None);
        assert_eq!((&lines[1]["route"], &lines[1]["status"]), (&"unmatched".into(), &404.into()));
        assert!(!format!("{lines:?}").contains("secret"));
    }

    #[tokio::test]
    async fn only_server_errors_reach_the_usual_log() {
        let lines = logged(tracing::Level::INFO, async {
            for path in ["/things/1", "/refused", "/nowhere", "/broken"] {
                let _ = router().oneshot(request(path)).await;
            }
        })
        .await;
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0]["error"], "bad page");
    }

    #[tokio::test]
    async fn a_client_that_goes_away_leaves_a_line() {
        let lines = logged(tracing::Level::DEBUG, async {
            assert!(router().oneshot(request("/stuck")).now_or_never().is_none());
        })
        .await;
        assert_eq!((lines.len(), &lines[0]["status"]), (1, &CLIENT_GONE.into()));
    }
}
