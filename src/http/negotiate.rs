//! Long answers compressed, for clients that ask for it. All others pay nothing for it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::Either;
use hyper::body::{Frame, SizeHint};
use tokio::task::spawn_blocking;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

use crate::error::{Error, Result};
use crate::etag;

use super::client::{self, TrustedProxies};
use super::constant::Constant;
use super::delivery::{Uncompressed, is_large, whole};

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
        let full = compression.layer(inner.clone().map_response(set_aside));
        let full = full.map_response(IntoResponse::into_response);
        Negotiated { inner, full: BoxCloneSyncService::new(full), proxies: self.proxies.clone() }
    }
}

/// The body of a large answer, as an extension of the response while its encoding is chosen: it is compressed
/// elsewhere.
#[derive(Clone)]
struct SetAside(Bytes);

/// Stands for a body of this size, of which nothing is read.
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

/// The response, without a body that must not be compressed on a request thread.
fn set_aside(mut response: Response) -> Response {
    if let Some(size) = response.extensions().get().map(Constant::size) {
        return response.map(|_| Body::new(Placeholder(size)));
    }
    if !is_large(&response) {
        return response;
    }
    let body = std::mem::take(response.body_mut());
    match whole(body) {
        Ok(bytes) => {
            *response.body_mut() = Body::new(Placeholder(bytes.len() as u64));
            response.extensions_mut().insert(SetAside(bytes));
            response
        }
        Err(error) => error.into_response(),
    }
}

/// The response with its body again, in the encoding that its headers name or marked as to be encoded.
async fn put_back(mut response: Response) -> Result<Response> {
    let packs = response.headers().contains_key(CONTENT_ENCODING);
    if let Some(constant) = response.extensions_mut().remove::<Constant>() {
        let body = if packs { gzip_of(constant).await?.into() } else { constant.into_body() };
        *response.body_mut() = body;
    } else if let Some(SetAside(bytes)) = response.extensions_mut().remove() {
        *response.body_mut() = bytes.into();
        if packs {
            response.extensions_mut().insert(Uncompressed);
        }
    }
    Ok(response)
}

async fn gzip_of(constant: Constant) -> Result<Bytes> {
    match constant.known_gzip() {
        Some(known) => known,
        None => spawn_blocking(move || constant.gzip()).await.map_err(Error::internal)?,
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
            let answered = put_back(answer.await?).await;
            let mut response = answered.unwrap_or_else(IntoResponse::into_response);
            tag_encoding(known.as_ref(), &mut response);
            Ok(response)
        }))
    }
}
