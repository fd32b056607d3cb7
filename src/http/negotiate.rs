//! What is done only for clients that ask for it: long answers compressed, and calls from pages of other origins
//! let through. All others pay nothing for it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE,
    ETAG, IF_MATCH, IF_NONE_MATCH, ORIGIN, RETRY_AFTER,
};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::etag;

use super::client::{self, TrustedProxies};

/// Shorter answers are sent as they are, in bytes.
const SHORT: u64 = 8 * 1024;
/// How long a browser may remember what it may do.
const REMEMBERED: Duration = Duration::from_hours(1);

/// The layer that does it.
#[derive(Clone)]
pub struct Negotiate(Arc<Terms>);

struct Terms {
    proxies: TrustedProxies,
    cors: Option<CorsLayer>,
}

impl Negotiate {
    /// Answers to clients on other machines are compressed where they take that: on loopback it only costs time.
    /// Pages of `origins` may call; `*` is any.
    pub fn new(origins: &[String], proxies: TrustedProxies) -> Self {
        Self(Arc::new(Terms { proxies, cors: (!origins.is_empty()).then(|| cors(origins)) }))
    }
}

fn cors(origins: &[String]) -> CorsLayer {
    let named = HeaderName::from_static;
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| origin.parse().ok()))
    };
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            IF_MATCH,
            IF_NONE_MATCH,
            named("idempotency-key"),
            named("x-request-id"),
        ])
        .expose_headers([
            ETAG,
            RETRY_AFTER,
            named("idempotent-replayed"),
            named("ratelimit-limit"),
            named("ratelimit-remaining"),
            named("ratelimit-reset"),
            named("x-request-id"),
        ])
        .max_age(REMEMBERED)
}

type Done = Result<Response, Infallible>;

impl<S> Layer<S> for Negotiate
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    type Service = Negotiated<S>;

    fn layer(&self, inner: S) -> Negotiated<S> {
        let compression = CompressionLayer::new()
            .quality(CompressionLevel::Fastest)
            .compress_when(SizeAbove::new(SHORT));
        let full = ServiceBuilder::new()
            .option_layer(self.0.cors.clone())
            .map_response(tag_encoding)
            .layer(compression)
            .service(inner.clone());
        let full = full.map_response(IntoResponse::into_response).map_err(|never| match never {});
        Negotiated { inner, full: BoxCloneSyncService::new(full), terms: Arc::clone(&self.0) }
    }
}

/// A compressed answer is another one than the plain: its tag says so.
fn tag_encoding<B>(mut response: axum::http::Response<B>) -> axum::http::Response<B> {
    let headers = response.headers_mut();
    if headers.contains_key(CONTENT_ENCODING)
        && let Some(tag) = headers.get(ETAG).and_then(|tag| tag.to_str().ok())
        && let Ok(tag) = HeaderValue::try_from(etag::compressed(tag))
    {
        headers.insert(ETAG, tag);
    }
    response
}

/// A service within [`Negotiate`].
#[derive(Clone)]
pub struct Negotiated<S> {
    inner: S,
    /// The same with all that may be asked for.
    full: BoxCloneSyncService<Request, Response, Infallible>,
    terms: Arc<Terms>,
}

impl<S> Service<Request> for Negotiated<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Send,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, Pin<Box<dyn Future<Output = Done> + Send>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let near = |request: &Request, terms: &Terms| {
            client::address(request.extensions(), request.headers(), &terms.proxies).is_loopback()
        };
        if request.headers().contains_key(ACCEPT_ENCODING) && near(&request, &self.terms) {
            request.headers_mut().remove(ACCEPT_ENCODING);
        }
        let encoded = request.headers().contains_key(ACCEPT_ENCODING);
        if encoded || (self.terms.cors.is_some() && crosses(&request)) {
            Either::Right(Box::pin(self.full.clone().oneshot(request)))
        } else {
            Either::Left(self.inner.call(request))
        }
    }
}

/// Whether a browser asks for a page of some origin. An OPTIONS without the method that is to follow is nobody's
/// preflight, but asks for what the path allows.
fn crosses(request: &Request) -> bool {
    request.headers().contains_key(ORIGIN)
        && (request.method() != Method::OPTIONS
            || request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD))
}
