//! The accept loop: HTTP/1.1 connections, by TLS or not, with the limits that `axum::serve` does not have.
//!
//! hyper's parser refuses more than 100 headers (431; a limit of our own would cost an allocation a
//! request) and what is no HTTP (400), both without a body. Its header timeout runs from a
//! connection's start and again from each answer, so it ends idle connections too.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::Service;

use super::client::{OverTls, Peer};
use super::front::Front;
use super::socket::Socket;
use super::tls::{Tls, TlsStream};

/// What one connection may hold in memory, in bytes, of what it sends before a handler takes it
/// (hyper panics below 8 KiB).
const READ_BUFFER: usize = 64 * 1024;

const FIRST_BACK_OFF: Duration = Duration::from_millis(50);
const LAST_BACK_OFF: Duration = Duration::from_secs(1);

/// What clients may take of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at one time; further ones wait in the kernel's queue. Default 4096.
    pub connections: usize,
    /// The time for a request's line and headers to arrive, and so also the time that a connection
    /// may be idle; on a connection's first request the TLS handshake counts in. Default 30 s.
    pub header_timeout: Duration,
    /// The size of a request's line and headers, in bytes. Default 32 KiB.
    pub header_bytes: usize,
    /// The time in which a client must take in something of the answer it is sent. Default 30 s.
    pub write_timeout: Duration,
    /// The time that requests under way get to finish once the server is to stop. Default 30 s.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            // Not under the time a request may take: tokio wakes itself, at the price of a system call,
            // for each timer that is due before all others, and answers that go out together start many.
            header_timeout: Duration::from_secs(30),
            header_bytes: 32 * 1024,
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(30),
        }
    }
}

/// Serves `front` on `listener` until `shutdown` is ready, then stops: no more connections, idle
/// ones closed at once, requests under way finished within `limits.grace`, the rest cut.
///
/// Each request carries its [`Peer`]. Dropping this future cuts everything.
///
/// # Errors
/// `InvalidInput` where `limits` allows no connection at all. Failures to accept are logged and
/// tried again.
pub async fn serve(
    listener: TcpListener,
    front: impl Into<Front>,
    limits: &ServerLimits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_by(None, listener, front, limits, shutdown).await
}

/// Does what [`serve`] does, by TLS where there is a certificate. A handshake counts as a connection, and is cut
/// when the server stops.
///
/// # Errors
/// As [`serve`].
pub async fn serve_by(
    tls: Option<Arc<Tls>>,
    listener: TcpListener,
    front: impl Into<Front>,
    limits: &ServerLimits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    if limits.connections == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the connection limit is zero"));
    }
    let (http, front) = (http(limits), front.into());
    let slots = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let stopping = GracefulShutdown::new();
    let (mut connections, mut handshakes) = (JoinSet::new(), JoinSet::new());
    let mut back_off = FIRST_BACK_OFF;
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            Some(done) = handshakes.join_next() => if let Ok(Some((connection, stream))) = done {
                connections.spawn(Connection::run(connection, http.clone(), stream, stopping.watcher()));
            },
            accepted = accept(&listener, &slots) => match accepted {
                Ok((stream, peer, slot)) => {
                    back_off = FIRST_BACK_OFF;
                    let socket = Socket::new(stream, limits.write_timeout);
                    let connection = Connection { peer, slot, front: front.clone(), deadline: None };
                    if let Some(tls) = tls.clone() {
                        handshakes.spawn(connection.secure(tls, socket, limits.header_timeout));
                    } else {
                        connections.spawn(connection.run(http.clone(), socket, stopping.watcher()));
                    }
                }
                Err(error) if concerns_one_client(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "connections cannot be accepted for the moment");
                    tokio::select! {
                        () = &mut shutdown => break,
                        () = sleep(back_off) => back_off = LAST_BACK_OFF.min(back_off * 2),
                    }
                }
            },
        }
    }
    drop((listener, handshakes));
    drain(stopping, connections, limits.grace).await;
    Ok(())
}

/// Ready when the process is told to stop: SIGTERM, or Ctrl-C (SIGINT), from the moment of the call on.
///
/// Must be called within a tokio runtime. A signal that cannot be listened for is logged, and keeps its usual effect: it ends the process.
pub fn stop_signal() -> impl Future<Output = ()> {
    let terminate = signalled(SignalKind::terminate());
    let interrupt = signalled(SignalKind::interrupt());
    async {
        tokio::select! {
            () = terminate => {}
            () = interrupt => {}
        }
    }
}

fn signalled(kind: SignalKind) -> impl Future<Output = ()> {
    let heard = signal(kind);
    async move {
        match heard {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(error) => {
                tracing::warn!(%error, signal = kind.as_raw_value(), "a stop signal is not heard");
                std::future::pending::<()>().await;
            }
        }
    }
}

fn http(limits: &ServerLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes.max(READ_BUFFER));
    http
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    // Fails only where the client is gone already, which the first read tells.
    let _gone = stream.set_nodelay(true);
    Ok((stream, peer, slot))
}

/// The client went away while it waited to be accepted; the next one may be tried at once.
fn concerns_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// One accepted connection, and the slot that it holds.
struct Connection {
    peer: SocketAddr,
    slot: OwnedSemaphorePermit,
    front: Front,
    /// Until when the head of the first request must be there; of a connection by TLS, whose handshake counts in.
    deadline: Option<Instant>,
}

impl Connection {
    /// The connection by TLS; none where the handshake failed.
    async fn secure(
        self,
        tls: Arc<Tls>,
        socket: Socket,
        header_timeout: Duration,
    ) -> Option<(Self, TlsStream)> {
        let deadline = Instant::now() + header_timeout;
        match tls.accept(socket, deadline).await {
            Ok(stream) => Some((Self { deadline: Some(deadline), ..self }, stream)),
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
        }
    }

    async fn run<S>(self, http: http1::Builder, stream: S, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Self { peer, slot, front, deadline } = self;
        let _open = front.open();
        let heard = AtomicBool::new(false);
        let service = service_fn(|mut request: Request<Incoming>| {
            heard.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(Peer(peer));
            if deadline.is_some() {
                request.extensions_mut().insert(OverTls);
            }
            front.router().call(request)
        });
        let served = watcher.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            served = served => if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            },
            () = silent(deadline, &heard) => tracing::debug!("a connection sent no request in time"),
        }
        drop(slot);
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

async fn drain(stopping: GracefulShutdown, mut connections: JoinSet<()>, grace: Duration) {
    let drained = async {
        stopping.shutdown().await;
        while connections.join_next().await.is_some() {}
    };
    if timeout(grace, drained).await.is_err() {
        let cut = connections.len();
        tracing::warn!(cut, "connections were still busy at the end of the grace period");
        connections.shutdown().await;
    }
}

#[cfg(test)]
mod tests;
