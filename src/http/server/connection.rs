//! One accepted connection, from its TLS handshake to its close. It accepts requests with one valid `Host` header, as HTTP/1.1
//! requires (RFC 9112, section 3.2): two servers could interpret others differently.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, EXPECT, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tower::Service;

use crate::base::error::Error;
use crate::http::client::{OverTls, Peer, RejectedRequest, is_valid_host};
use crate::http::swappable_router::SwappableRouter;
use crate::http::tls::Tls;

use super::ServerLimits;
use super::bodies::{TurnBody, discard_rest, keep_rest};
use super::connection_table::{AcceptedConnection, Slot};
use super::socket::Socket;
use super::turns::TurnWaiter;

/// The bytes of a connection, with or without TLS. hyper is compiled once for both.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An accepted connection.
pub(super) struct Connection {
    peer: SocketAddr,
    router: SwappableRouter,
    slot: Arc<Slot>,
    /// Ready when the slot was given to another connection.
    closed: oneshot::Receiver<Infallible>,
    /// The time after which the next response closes the connection. `None` means never.
    close_after: Option<Instant>,
    /// The time limit for the rest of a body that the service did not read.
    discard_timeout: Duration,
    /// The deadline for the headers of the first request on a TLS connection, which includes the handshake.
    deadline: Option<Instant>,
}

impl Connection {
    /// Creates a connection in its slot, and its stream.
    pub(super) fn new(
        peer: SocketAddr,
        admitted: AcceptedConnection,
        stream: TcpStream,
        router: &SwappableRouter,
        limits: &ServerLimits,
    ) -> (Self, Socket) {
        let AcceptedConnection { slot, closed, replaced_idle } = admitted;
        if replaced_idle {
            router.closed.increment(1);
        }
        let stream = Socket::new(stream, limits.write_timeout, Arc::clone(&slot));
        let close_after = Instant::now().checked_add(limits.connection_age);
        let router = router.clone();
        let discard_timeout = limits.header_timeout;
        (Self { peer, router, slot, closed, close_after, discard_timeout, deadline: None }, stream)
    }

    /// Performs the TLS handshake. Returns `None` if it fails.
    pub(super) async fn accept_tls(
        mut self,
        tls: Arc<Tls>,
        stream: Socket,
        header_timeout: Duration,
    ) -> Option<(Self, Box<dyn Stream>)> {
        let deadline = Instant::now() + header_timeout;
        let accepted = tokio::select! {
            accepted = tls.accept(stream, deadline) => accepted,
            _ = &mut self.closed => return None,
        };
        match accepted {
            Ok(stream) => {
                self.slot.end_answer();
                let stream: Box<dyn Stream> = Box::new(stream);
                Some((Self { deadline: Some(deadline), ..self }, stream))
            }
            Err(error) => {
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
        }
    }

    /// Serves requests until the connection closes.
    pub(super) async fn run(self, http: http1::Builder, stream: Box<dyn Stream>, watcher: Watcher) {
        let Self { peer, router, slot, closed, close_after, discard_timeout, deadline } = self;
        let _open = router.count_open();
        let (heard, known_host) = (AtomicBool::new(false), OnceLock::new());
        let service = service_fn(|mut request: Request<Incoming>| {
            heard.store(true, Ordering::Relaxed);
            // Bytes of a pipelined request were read with the previous one, so the stream did not see it begin.
            let begun = slot.begin_request();
            let extensions = request.extensions_mut();
            extensions.insert(Peer(peer));
            if deadline.is_some() {
                extensions.insert(OverTls);
            }
            let refused = require_one_host(&request, &known_host).err();
            let is_last =
                refused.is_some() || close_after.is_some_and(|moment| Instant::now() >= moment);
            if let Some(error) = refused {
                request.extensions_mut().insert(RejectedRequest(error));
            }
            let has_body = !request.body().is_end_stream();
            // Such a client sends its body only when the body is read.
            let waits = has_body && request.headers().contains_key(EXPECT);
            let request = request.map(|body| TurnBody::new(body, Arc::clone(&slot), keep_rest));
            let (answer, slot) = (router.router().call(request), Arc::clone(&slot));
            async move {
                begun?;
                let mut waiting = TurnWaiter::default();
                poll_fn(|cx| slot.poll_turn(&mut waiting, cx)).await;
                let Ok(mut response) = answer.await;
                let arrives = !waits && response.status() != StatusCode::REQUEST_TIMEOUT;
                let is_complete = !has_body || discard_rest(&slot, discard_timeout, arrives).await;
                if is_last || !is_complete {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<Response<_>, io::Error>(
                    response.map(|body| TurnBody::new(body, slot, |_, slot| slot.end_answer())),
                )
            }
        });
        let served = watcher.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            served = served => if let Err(error) = served {
                tracing::debug!(%error, "connection closed early");
            },
            () = first_request_timeout(deadline, &heard) => tracing::debug!("connection closed: it sent no request in time"),
            _ = closed => tracing::debug!("idle connection closed to make room for another"),
        }
    }
}

/// Completes at the deadline if no request has arrived. Otherwise never completes.
async fn first_request_timeout(deadline: Option<Instant>, heard: &AtomicBool) {
    if let Some(deadline) = deadline {
        sleep_until(deadline).await;
        if !heard.load(Ordering::Relaxed) {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Requires one valid `Host` header. `known` holds the first valid value of the connection: clients rarely send another,
/// so it is checked once.
///
/// # Errors
/// 400 if there are several `Host` headers, if an HTTP/1.1 request has none, or if the value is not a valid host.
pub(super) fn require_one_host<B>(
    request: &Request<B>,
    known: &OnceLock<HeaderValue>,
) -> Result<(), Error> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let detail = match (hosts.next(), hosts.next()) {
        (Some(host), None) if known.get() == Some(host) => return Ok(()),
        (Some(host), None) if is_valid_host(host) => {
            known.get_or_init(|| host.clone());
            return Ok(());
        }
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (None, _) => "An HTTP/1.1 request needs a Host header.",
        (Some(_), Some(_)) => "A request may have only one Host header.",
        (Some(_), None) => "The Host header does not hold a valid host.",
    };
    Err(Error::invalid_request("invalid_host", detail))
}
