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
use tower::{Layer, Service, ServiceExt};
use tower_http::cors::CorsLayer;
use uuid::{Builder, Uuid};

use super::client::{self, TrustedProxies};
use super::delivery::Delivery;
use super::limits::Limits;
use super::metered::Requests;
use super::overload::OverloadLog;
use super::{cors, guards};
use crate::error::Error;
use crate::ids::{ApiKeyId, OrganizationId};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request that takes longer is worth a warning.
const SLOW: Duration = Duration::from_secs(1);

/// What whoever watches the process is answered while it is not ready.
const UNAVAILABLE: u16 = 503;

/// The status in the log, and only there, of a request whose client went away before its answer
/// (nginx's number for it).
const CLIENT_GONE: u16 = 499;

/// What a request's line in the log goes under: `--log info,request=debug` shows them all.
pub(super) const TARGET: &str = "request";

/// The outermost layer: `Router::layer(Around::new(..))`, after all routes and the fallback.
///
/// It answers every request with its `X-Request-Id` (the client's own where that is 1 to 128 of
/// `[A-Za-z0-9._-]`, else a new version 7 UUID), turns a panic into a 500 and an overrun of its
/// time into a 503, and logs one line a request, under the target `request`: an error for 5xx, a warning
/// for what takes more than a second, debug for all else, and for a service that says that it is not ready. A
/// line never holds a body, a header (but the id), a raw path or a query.
#[derive(Clone)]
pub struct Around(Arc<Shared>);

/// How requests are dealt with.
pub struct Terms {
    /// Bounds the time from a request's head to its response's head, so it should exceed the time that a body
    /// has.
    pub timeout: Duration,
    /// Whose word on the client's address is believed.
    pub proxies: TrustedProxies,
    /// How often an address may ask.
    pub limits: Arc<Limits>,
    /// Whether clients reach the service by HTTPS.
    pub secure: bool,
    /// What lets pages of other origins call, refusals of this layer included.
    pub cors: Option<CorsLayer>,
    /// Where requests are counted, if they are.
    pub requests: Option<Arc<Requests>>,
    /// How large answers leave.
    pub delivery: Delivery,
}

struct Shared {
    terms: Terms,
    overloads: OverloadLog,
    ids: Ids,
}

impl Around {
    /// The layer that deals with requests on these terms.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self(Arc::new(Shared { terms, overloads: OverloadLog::default(), ids: Ids::default() }))
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
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let line = Line::of(&request, &self.shared);
        let shared = Arc::clone(&self.shared);
        if let Some(cors) = shared.terms.cors.as_ref().filter(|_| cors::crosses(&request)) {
            let (mut inner, within, client) =
                (self.inner.clone(), Arc::clone(&shared), line.client());
            let bounded = move |request| bounded(&mut inner, request, client, Arc::clone(&within));
            let answer = cors.layer(tower::service_fn(bounded)).oneshot(request);
            return Box::pin(async move {
                let Ok(response) = answer.await;
                Ok(line.end(response, &shared))
            });
        }
        let client = line.client();
        let answer = bounded(&mut self.inner, request, client, Arc::clone(&shared));
        Box::pin(async move {
            let Ok(response) = answer.await;
            Ok(line.end(response, &shared))
        })
    }
}

/// The answer of `inner`, unless `client` asks too often, it takes too long, or it panics.
fn bounded<S>(
    inner: &mut S,
    request: Request,
    client: RequestClient,
    shared: Arc<Shared>,
) -> impl Future<Output = Result<Response, Infallible>> + Send + use<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    let counted =
        if client.is_counted { shared.terms.limits.count_peer(client.address) } else { Ok(()) };
    let counted = counted.and_then(|()| match request.extensions().get() {
        Some(client::Refused(error)) => Err(error.clone()),
        None => Ok(()),
    });
    // axum's `Route` only builds a future here: what can panic runs when that is polled.
    let answer = counted.map(|()| AssertUnwindSafe(inner.call(request)).catch_unwind());
    async move {
        let timeout = shared.terms.timeout;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Ok(error.into_response()),
        };
        Ok(match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(Ok(response))) => shared.terms.delivery.deliver(response, client.address),
            Ok(Err(panic)) => Error::internal(panic_text(&*panic)).into_response(),
            Err(_) => too_slow(timeout).into_response(),
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

/// Whom the gate dealt with, for the log.
#[derive(Clone)]
pub(super) struct Passage {
    pub(super) key: ApiKeyId,
    /// Where the path leads.
    pub(super) organization: Option<OrganizationId>,
    begun: Instant,
}

impl Passage {
    pub(super) fn of(key: ApiKeyId) -> Self {
        Self { key, organization: None, begun: Instant::now() }
    }

    /// Goes along with an answer whose line in the log is shown.
    pub(super) fn note(self, response: &mut Response) {
        let shown = response.status().is_server_error()
            || tracing::enabled!(target: TARGET, tracing::Level::DEBUG)
            || self.begun.elapsed() > SLOW;
        if shown {
            response.extensions_mut().insert(self);
        }
    }
}

/// The client of a request.
#[derive(Clone, Copy)]
struct RequestClient {
    address: IpAddr,
    /// Whether its requests are counted: probes are not, because monitoring asks often.
    is_counted: bool,
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
    passage: Option<Passage>,
    requests: Option<Arc<Requests>>,
    overloads: OverloadLog,
}

impl Line {
    fn of(request: &Request, shared: &Shared) -> Self {
        let requests = shared.terms.requests.clone();
        if let Some(requests) = &requests {
            requests.begin();
        }
        Self {
            id: RequestId::of(request, &shared.ids),
            method: request.method().clone(),
            route: request.extensions().get().cloned(),
            client: client::address(request.extensions(), request.headers(), &shared.terms.proxies),
            start: Instant::now(),
            status: CLIENT_GONE,
            error: None,
            passage: None,
            requests,
            overloads: shared.overloads.clone(),
        }
    }

    fn client(&self) -> RequestClient {
        RequestClient { address: self.client, is_counted: !self.is_probe() }
    }

    fn is_probe(&self) -> bool {
        self.route().starts_with("/_")
    }

    /// Notes how it was answered, and adds what goes with every answer.
    fn end(mut self, mut response: Response, shared: &Shared) -> Response {
        self.status = response.status().as_u16();
        self.error = response.extensions_mut().remove();
        self.passage = response.extensions_mut().remove();
        response.headers_mut().insert(REQUEST_ID, self.id.to_header());
        guards::add(&self.method, response.headers_mut(), shared.terms.secure);
        response
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("unmatched", MatchedPath::as_str)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let took = self.start.elapsed();
        if let Some(requests) = &self.requests {
            let route = self.route.as_ref().map(MatchedPath::as_str);
            requests.end(route, &self.method, self.status, took);
        }
        // The fields are worked out only where the level is enabled.
        macro_rules! line {
            ($level:ident, $text:literal $(, $name:ident = $value:expr)?) => {
                tracing::$level!(
                    target: TARGET,
                    request_id = %self.id,
                    method = %self.method,
                    route = self.route(),
                    status = self.status,
                    duration_ms = took.as_secs_f64() * 1000.0,
                    client = %self.client,
                    key = self.passage.as_ref().map(|passage| tracing::field::display(passage.key)),
                    organization = self.passage.as_ref().and_then(|passage| {
                        passage.organization.map(tracing::field::display)
                    }),
                    $($name = $value,)?
                    $text
                )
            };
        }
        // What keeps the service from being ready is told where it comes about, once.
        let expected = self.is_probe() && self.status == UNAVAILABLE;
        let overload = self.error.as_ref().filter(|error| error.is_overload());
        if let Some(limit) = overload.and_then(Error::cause) {
            self.overloads.count(limit);
            if let Some(requests) = &self.requests {
                requests.refuse();
            }
            line!(debug, "request refused: a limit is in use", error = limit);
        } else if self.status >= 500 && !expected {
            let cause = self.error.as_ref().and_then(Error::cause);
            line!(error, "request failed", error = cause);
        } else if took > SLOW && !expected {
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
mod tests;
