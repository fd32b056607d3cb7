//! The outermost layer: request ids, the time limit, panics, security headers and the request log.

use std::any::Any;
use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tower::{Layer, Service, ServiceExt};
use tower_http::cors::CorsLayer;
use tracing::field::{DisplayValue, display};

use super::client;
use super::delivery::ResponseDelivery;
use super::metrics::RequestMetrics;
use super::request_log::{LOG_TARGET, LogContext, REQUEST_ID, Refusals, RequestId, SLOW_REQUEST};
use super::security_headers::{add_security_headers, is_cross_origin};
use crate::app::rate_limit::RateLimits;
use crate::base::error::Error;
use crate::net::TrustedProxies;

/// The status of the readiness probe while the service is not ready.
const NOT_READY: u16 = 503;

/// The status that is logged when the client disconnects before the response. It is nginx's code and is never
/// sent.
const CLIENT_GONE: u16 = 499;

/// The outermost layer. Add it with `Router::layer` after all routes and the fallback.
///
/// - Sets `X-Request-Id` on every response. The layer keeps the client's id if it is 1 to 128 characters of
///   `[A-Za-z0-9._-]`, and otherwise generates a version 7 UUID.
/// - Answers a panic with 500 and a timeout with 503.
/// - Logs one line per request under the target `request`: an error for a 5xx status, a warning for a request
///   slower than one second, and debug for all others. A readiness probe that returns 503 is logged at debug
///   level too.
///
/// A log line never contains a body, a raw path, a query, or a header other than the request id.
#[derive(Clone)]
pub struct RequestLayer(Arc<Shared>);

/// The configuration of [`RequestLayer`].
pub struct RequestLayerConfig {
    /// The maximum time from the request head to the response head. Set it longer than the time limit for
    /// reading a body.
    pub timeout: Duration,
    /// The proxies whose forwarding headers are trusted.
    pub trusted_proxies: TrustedProxies,
    /// The rate limit per client address.
    pub rate_limiter: Arc<RateLimits>,
    /// Whether clients reach the service over HTTPS.
    pub is_https: bool,
    /// The CORS policy. It also applies to errors that this layer returns.
    pub cors: Option<CorsLayer>,
    /// The request metrics, if they are enabled.
    pub metrics: Option<Arc<RequestMetrics>>,
    /// Sends large responses.
    pub delivery: ResponseDelivery,
}

struct Shared {
    config: RequestLayerConfig,
    /// Requests that were refused because a limit was reached.
    refusals: Mutex<Refusals>,
}

impl RequestLayer {
    /// Creates the layer.
    #[must_use]
    pub fn new(config: RequestLayerConfig) -> Self {
        Self(Arc::new(Shared { config, refusals: Mutex::default() }))
    }
}

impl<S> Layer<S> for RequestLayer {
    type Service = RequestService<S>;

    fn layer(&self, inner: S) -> RequestService<S> {
        RequestService { inner, shared: Arc::clone(&self.0) }
    }
}

/// A service wrapped by [`RequestLayer`].
#[derive(Clone)]
pub struct RequestService<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request> for RequestService<S>
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
        let line = RequestLog::of(&request, &self.shared);
        let (client, shared) = ((line.client, line.is_probe()), Arc::clone(&self.shared));
        if let Some(cors) = self.shared.config.cors.as_ref().filter(|_| is_cross_origin(&request)) {
            let mut inner = self.inner.clone();
            let bounded =
                move |request| call_with_limits(&mut inner, request, client, Arc::clone(&shared));
            let answer = cors.layer(tower::service_fn(bounded)).oneshot(request);
            return Box::pin(async move {
                let Ok(response) = answer.await;
                Ok(line.finish(response))
            });
        }
        let answer = call_with_limits(&mut self.inner, request, client, shared);
        Box::pin(async move {
            let Ok(response) = answer.await;
            Ok(line.finish(response))
        })
    }
}

/// Calls `inner`. Returns an error response if `client` exceeds its rate limit, if `inner` times out, or if
/// it panics. A probe does not count: monitoring calls it too often for the rate limit.
fn call_with_limits<S>(
    inner: &mut S,
    request: Request,
    (client, is_probe): (IpAddr, bool),
    shared: Arc<Shared>,
) -> impl Future<Output = Result<Response, Infallible>> + Send + use<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    let counted = if is_probe { Ok(()) } else { shared.config.rate_limiter.check_peer(client) };
    let counted = counted.and_then(|()| match request.extensions().get() {
        Some(client::RejectedRequest(error)) => Err(error.clone()),
        None => Ok(()),
    });
    // axum's `Route::call` only builds a future. A handler can panic only while that future is polled.
    let answer = counted.map(|()| AssertUnwindSafe(inner.call(request)).catch_unwind());
    async move {
        let timeout = shared.config.timeout;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Ok(error.into_response()),
        };
        Ok(match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(Ok(response))) => shared.config.delivery.deliver(response, client),
            Ok(Err(panic)) => Error::internal(panic_text(&*panic)).into_response(),
            Err(_) => {
                Error::unavailable(1, format_args!("no answer within {timeout:?}")).into_response()
            }
        })
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("no text"))
}

/// A request's log line. `Drop` writes it, so it is written exactly once, even if the client disconnects and
/// the response future is dropped.
struct RequestLog {
    id: RequestId,
    method: Method,
    route: Option<MatchedPath>,
    client: IpAddr,
    start: Instant,
    status: u16,
    error: Option<Error>,
    context: Option<LogContext>,
    shared: Arc<Shared>,
}

impl RequestLog {
    fn of(request: &Request, shared: &Arc<Shared>) -> Self {
        if let Some(requests) = &shared.config.metrics {
            requests.begin();
        }
        Self {
            id: RequestId::of(request),
            method: request.method().clone(),
            route: request.extensions().get().cloned(),
            client: client::address(
                request.extensions(),
                request.headers(),
                &shared.config.trusted_proxies,
            ),
            start: Instant::now(),
            status: CLIENT_GONE,
            error: None,
            context: None,
            shared: Arc::clone(shared),
        }
    }

    fn is_probe(&self) -> bool {
        self.route().starts_with("/_")
    }

    /// Records the outcome, and sets the headers that every response has.
    fn finish(mut self, mut response: Response) -> Response {
        self.status = response.status().as_u16();
        self.error = response.extensions_mut().remove();
        self.context = response.extensions_mut().remove();
        response.headers_mut().insert(REQUEST_ID, self.id.to_header());
        let is_https = self.shared.config.is_https;
        add_security_headers(&self.method, response.headers_mut(), is_https);
        response
    }

    /// Returns a value of the context, if the request has a context with that value.
    fn logged<T: Display>(
        &self,
        value: impl FnOnce(&LogContext) -> Option<T>,
    ) -> Option<DisplayValue<T>> {
        self.context.as_ref().and_then(value).map(display)
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("unmatched", MatchedPath::as_str)
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let took = self.start.elapsed();
        let Shared { config, refusals } = &*self.shared;
        if let Some(requests) = &config.metrics {
            let route = self.route.as_ref().map(MatchedPath::as_str);
            requests.end(route, &self.method, self.status, took);
        }
        // The macro evaluates its fields only if the level is enabled.
        macro_rules! line {
            ($level:ident, $text:literal $(, $name:ident = $value:expr)?) => {
                tracing::$level!(
                    target: LOG_TARGET,
                    request_id = %self.id,
                    method = %self.method,
                    route = self.route(),
                    status = self.status,
                    duration_ms = took.as_secs_f64() * 1000.0,
                    client = %self.client,
                    key = self.logged(|context| context.key),
                    session = self.logged(|context| context.session),
                    organization = self.logged(|context| context.organization),
                    $($name = $value,)?
                    $text
                )
            };
        }
        // The component that makes the service unready logs the reason once, so failing probes are not
        // errors.
        let expected = self.is_probe() && self.status == NOT_READY;
        let overload = self.error.as_ref().filter(|error| error.is_overload());
        if let Some(limit) = overload.and_then(Error::cause) {
            let mut refusals = refusals.lock().unwrap_or_else(PoisonError::into_inner);
            let due = refusals.add(Instant::now());
            drop(refusals);
            if let Some(count) = due {
                tracing::warn!(target: LOG_TARGET, count, limit, "requests refused: limits reached");
            }
            if let Some(requests) = &config.metrics {
                requests.overloads.increment(1);
            }
            line!(debug, "request refused: limit reached", error = limit);
        } else if self.status >= 500 && !expected {
            let cause = self.error.as_ref().and_then(Error::cause);
            line!(error, "request failed", error = cause);
        } else if took > SLOW_REQUEST && !expected {
            line!(warn, "slow request");
        } else {
            line!(debug, "request");
        }
    }
}

#[cfg(test)]
mod tests;
