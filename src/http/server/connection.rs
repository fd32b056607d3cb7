//! One accepted connection: its TLS handshake, its requests, its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tower::Service;

use super::activity::{InTurns, WatchedBody, WatchedStream};
use super::connections::{Admitted, Slot};
use super::turns::Waiting;
use super::{ServerLimits, host};
use crate::http::client::{OverTls, Peer, Refused};
use crate::http::front::Front;
use crate::http::socket::Socket;
use crate::http::tls::{Tls, TlsStream};

/// The stream of a connection without TLS.
type PlainStream = WatchedStream<Socket>;

/// One accepted connection.
pub(super) struct Connection {
    peer: SocketAddr,
    front: Front,
    slot: Arc<Slot>,
    /// Ready when the slot was given to another connection.
    closed: oneshot::Receiver<Infallible>,
    /// From when on the next answer is the last one; none for never.
    last_answer: Option<Instant>,
    /// Until when the head of the first request must be there; of a connection by TLS, whose handshake counts in.
    deadline: Option<Instant>,
}

impl Connection {
    /// A connection in the slot that it was given, and its stream.
    pub(super) fn new(
        peer: SocketAddr,
        admitted: Admitted,
        stream: TcpStream,
        front: &Front,
        limits: &ServerLimits,
    ) -> (Self, PlainStream) {
        let Admitted { slot, closed, is_in_place_of_another } = admitted;
        if is_in_place_of_another {
            front.count_closed();
        }
        let socket = Socket::new(stream, limits.write_timeout);
        let stream = WatchedStream::new(socket, Arc::clone(&slot));
        let last_answer = Instant::now().checked_add(limits.connection_age);
        (Self { peer, front: front.clone(), slot, closed, last_answer, deadline: None }, stream)
    }

    /// The connection by TLS; none where the handshake failed.
    pub(super) async fn secure(
        mut self,
        tls: Arc<Tls>,
        stream: PlainStream,
        header_timeout: Duration,
    ) -> Option<(Self, TlsStream<PlainStream>)> {
        let deadline = Instant::now() + header_timeout;
        let accepted = tokio::select! {
            accepted = tls.accept(stream, deadline) => accepted,
            _ = &mut self.closed => return None,
        };
        match accepted {
            Ok(stream) => {
                self.slot.end_answer();
                Some((Self { deadline: Some(deadline), ..self }, stream))
            }
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
        }
    }

    /// Serves requests until the connection ends.
    pub(super) async fn run<S>(self, http: http1::Builder, stream: S, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Self { peer, front, slot, closed, last_answer, deadline } = self;
        let _open = front.open();
        let heard = AtomicBool::new(false);
        let service = service_fn(|mut request: Request<Incoming>| {
            heard.store(true, Ordering::Relaxed);
            // A request that came together with the one before was read with it.
            let begun = slot.begin_request();
            let extensions = request.extensions_mut();
            extensions.insert(Peer(peer));
            if deadline.is_some() {
                extensions.insert(OverTls);
            }
            let refused = host::require_one(&request).err();
            let is_last =
                refused.is_some() || last_answer.is_some_and(|moment| Instant::now() >= moment);
            if let Some(error) = refused {
                request.extensions_mut().insert(Refused(error));
            }
            let request = request.map(|body| InTurns::new(body, Arc::clone(&slot)));
            let (answer, slot) = (front.router().call(request), Arc::clone(&slot));
            async move {
                begun?;
                let mut waiting = Waiting::default();
                poll_fn(|cx| slot.poll_turn(&mut waiting, cx)).await;
                let Ok(mut response) = answer.await;
                if is_last {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<Response<_>, io::Error>(response.map(|body| {
                    let body = InTurns::new(body, Arc::clone(&slot));
                    WatchedBody::new(body, slot)
                }))
            }
        });
        let served = watcher.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            served = served => if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            },
            () = silent(deadline, &heard) => tracing::debug!("a connection sent no request in time"),
            _ = closed => tracing::debug!("an idle connection was closed for another one"),
        }
    }
}

/// Ready at the deadline where no request was heard until then.
async fn silent(deadline: Option<Instant>, heard: &AtomicBool) {
    if let Some(deadline) = deadline {
        sleep_until(deadline).await;
        if !heard.load(Ordering::Relaxed) {
            return;
        }
    }
    std::future::pending::<()>().await;
}
