//! Compresses long responses for clients that accept gzip.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::Either;
use hyper::body::{Frame, SizeHint};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

use crate::base::error::Result;
use crate::base::tasks::run_blocking;
use crate::exchange::etag;
use crate::net::TrustedProxies;

use super::assets::StaticResponse;
use super::client;
use super::delivery::{PendingGzip, collect_body, is_large};

/// Responses of at most this many bytes are not compressed.
const MIN_SIZE: u64 = 8 * 1024;

/// The level of compression. It takes at most 0.3 ms for a response of 50 KB, 0.1 ms more than level 1, whose output is
/// a quarter longer. Longer responses are compressed elsewhere.
const LEVEL: i32 = 4;

/// The compression layer. Responses to clients on this machine are not compressed, because that only costs
/// time.
#[derive(Clone)]
pub struct GzipLayer {
    /// The proxies whose forwarding headers are trusted.
    pub proxies: TrustedProxies,
}

type ServiceResult = Result<Response, Infallible>;

impl<S> Layer<S> for GzipLayer
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    type Service = GzipService<S>;

    fn layer(&self, inner: S) -> GzipService<S> {
        let compression = CompressionLayer::new()
            .quality(CompressionLevel::Precise(LEVEL))
            .compress_when(SizeAbove::new(MIN_SIZE));
        let full = compression.layer(inner.clone().map_response(defer_body));
        let full = full.map_response(IntoResponse::into_response);
        GzipService {
            inner,
            compressed: Arc::new(BoxCloneSyncService::new(full)),
            proxies: self.proxies.clone(),
        }
    }
}

/// The body of a large response, kept as an extension while the encoding is chosen. It is compressed
/// elsewhere.
#[derive(Clone)]
struct DeferredBody(Bytes);

/// An empty body that reports this size.
struct Placeholder(u64);

impl HttpBody for Placeholder {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

/// Replaces the body with a placeholder if it must not be compressed on a request thread.
fn defer_body(mut response: Response) -> Response {
    if let Some(constant) = response.extensions().get::<StaticResponse>() {
        let size = constant.plain().len() as u64;
        return response.map(|_| Body::new(Placeholder(size)));
    }
    if !is_large(&response) {
        return response;
    }
    let body = std::mem::take(response.body_mut());
    match collect_body(body) {
        Ok(bytes) => {
            *response.body_mut() = Body::new(Placeholder(bytes.len() as u64));
            response.extensions_mut().insert(DeferredBody(bytes));
            response
        }
        Err(error) => error.into_response(),
    }
}

/// Restores the body in the encoding of the response headers, or marks it for compression.
async fn restore_body(mut response: Response) -> Result<Response> {
    let packs = response.headers().contains_key(CONTENT_ENCODING);
    if let Some(constant) = response.extensions_mut().remove::<StaticResponse>() {
        let bytes = match constant.cached_gzip() {
            _ if !packs => constant.plain(),
            Some(known) => known?,
            None => run_blocking(move || constant.gzip()).await??,
        };
        *response.body_mut() = bytes.into();
    } else if let Some(DeferredBody(bytes)) = response.extensions_mut().remove() {
        *response.body_mut() = bytes.into();
        if packs {
            response.extensions_mut().insert(PendingGzip);
        }
    }
    Ok(response)
}

/// Changes the entity tag of a compressed response, including a 304 for one, so that it differs from the
/// plain form.
fn tag_encoding(if_none_match: Option<&HeaderValue>, response: &mut Response) {
    let known = if_none_match.and_then(|sent| sent.to_str().ok());
    let (status, headers) = (response.status(), response.headers());
    let Some(tag) = headers.get(ETAG).and_then(|tag| tag.to_str().ok()) else { return };
    let compressed = etag::gzip_tag(tag);
    let is_known = status == StatusCode::NOT_MODIFIED
        && known.is_some_and(|known| known.contains(&compressed));
    if (headers.contains_key(CONTENT_ENCODING) || is_known)
        && let Ok(tag) = HeaderValue::try_from(compressed)
    {
        response.headers_mut().insert(ETAG, tag);
    }
}

/// A service wrapped by [`GzipLayer`].
#[derive(Clone)]
pub struct GzipService<S> {
    inner: S,
    /// The same service with compression. It is shared, because cloning it copies every layer inside, and few requests
    /// need it.
    compressed: Arc<BoxCloneSyncService<Request, Response, Infallible>>,
    proxies: TrustedProxies,
}

impl<S> Service<Request> for GzipService<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Send,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, Pin<Box<dyn Future<Output = ServiceResult> + Send>>>;

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
        let answer = BoxCloneSyncService::clone(&self.compressed).oneshot(request);
        Either::Right(Box::pin(async move {
            let answered = restore_body(answer.await?).await;
            let mut response = answered.unwrap_or_else(IntoResponse::into_response);
            tag_encoding(known.as_ref(), &mut response);
            Ok(response)
        }))
    }
}
