//! Long answers compressed, for clients that ask for it. All others pay nothing for it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

use crate::etag;

use super::client::{self, TrustedProxies};

/// Shorter answers are sent as they are, in bytes.
const SHORT: u64 = 8 * 1024;

/// The layer that does it. Answers to clients on this machine are sent as they are: there it only costs time.
#[derive(Clone)]
pub struct Negotiate {
    /// Whose word on the client's address is believed.
    pub proxies: TrustedProxies,
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
        let full = compression.layer(inner.clone());
        let full = full.map_response(IntoResponse::into_response);
        Negotiated { inner, full: BoxCloneSyncService::new(full), proxies: self.proxies.clone() }
    }
}

/// A compressed answer is another one than the plain: its tag says so, also where the reader has it already.
fn tag_encoding(if_none_match: Option<&HeaderValue>, response: &mut Response) {
    let known = if_none_match.and_then(|sent| sent.to_str().ok());
    let (status, headers) = (response.status(), response.headers());
    let Some(tag) = headers.get(ETAG).and_then(|tag| tag.to_str().ok()) else { return };
    let compressed = etag::compressed(tag);
    let is_known = status == StatusCode::NOT_MODIFIED
        && known.is_some_and(|known| known.contains(&compressed));
    if (headers.contains_key(CONTENT_ENCODING) || is_known)
        && let Ok(tag) = HeaderValue::try_from(compressed)
    {
        response.headers_mut().insert(ETAG, tag);
    }
}

/// A service within [`Negotiate`].
#[derive(Clone)]
pub struct Negotiated<S> {
    inner: S,
    /// The same, compressed.
    full: BoxCloneSyncService<Request, Response, Infallible>,
    proxies: TrustedProxies,
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
        if !request.headers().contains_key(ACCEPT_ENCODING) {
            return Either::Left(self.inner.call(request));
        }
        let near = client::address(request.extensions(), request.headers(), &self.proxies);
        if near.is_loopback() {
            request.headers_mut().remove(ACCEPT_ENCODING);
            return Either::Left(self.inner.call(request));
        }
        let known = request.headers().get(IF_NONE_MATCH).cloned();
        let answer = self.full.clone().oneshot(request);
        Either::Right(Box::pin(async move {
            let mut response = answer.await?;
            tag_encoding(known.as_ref(), &mut response);
            Ok(response)
        }))
    }
}
