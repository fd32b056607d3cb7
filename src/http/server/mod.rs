//! The accept loop: HTTP/1.1 connections with and without TLS, with limits that `axum::serve` lacks.
//!
//! hyper's parser answers more than 100 headers with 431 and invalid HTTP with 400, both without a body. A different
//! header limit would cost an allocation per request. hyper's header timeout starts with the connection and again
//! after each response, so it also closes idle connections.

mod bodies;
mod connection;
mod connection_table;
mod socket;
mod turns;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::request_log::Refusals;
use super::swappable_router::SwappableRouter;
use super::tls::Tls;
use crate::net::TrustedProxies;
use connection::Connection;
use connection_table::ConnectionTable;

/// Sockets that a listener may open beyond [`ServerLimits::connections`].
pub const EXTRA_SOCKETS: usize =
    connection_table::LOOPBACK_RESERVE + connection_table::CLOSING_SOCKETS;

/// The largest read buffer of a connection, in bytes. hyper panics below 8 KiB.
const MAX_READ_BUFFER: usize = 64 * 1024;

const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The limits of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum open connections. At the limit, a new connection replaces the longest idle connection of the address
    /// with the most connections, or is refused if none is idle. A few more loopback connections are accepted.
    /// Default 4096.
    pub connections: usize,
    /// Maximum open connections per IPv4 address or IPv6 /64 network. At the limit, a new connection replaces the
    /// longest idle one, or is refused if none is idle. Default 1024.
    pub connections_per_address: usize,
    /// Proxies whose connections are not limited per address. Default none.
    pub trusted_proxies: TrustedProxies,
    /// The age at which a connection is closed after its next response. Default 1 h.
    pub connection_age: Duration,
    /// Maximum time to receive a request's line and headers, and so also the maximum idle time. For the first request
    /// it includes the TLS handshake. Default 30 s.
    pub header_timeout: Duration,
    /// Maximum size of a request's line and headers, in bytes. Default 32 KiB.
    pub header_bytes: usize,
    /// The time in which a client must accept 64 KiB of a response, or the rest of it. Default 30 s.
    pub write_timeout: Duration,
    /// The time for requests in progress to finish when the server stops. Default 30 s.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_address: 1024,
            trusted_proxies: TrustedProxies::default(),
            connection_age: Duration::from_hours(1),
            // At least the request timeout: tokio wakes itself with a system call for each timer that is due before
            // all others, and every response starts such a timer.
            header_timeout: Duration::from_secs(30),
            header_bytes: 32 * 1024,
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(30),
        }
    }
}

/// Serves `router` on `listener` until `shutdown` completes. Then it accepts no more connections, closes idle ones at
/// once, and closes the others when their requests finish or after `limits.grace`.
///
/// Each request carries its [`Peer`](super::client::Peer). Dropping the future closes every connection at once.
///
/// # Errors
/// `InvalidInput` if a connection limit is zero. Failures to accept are logged and retried.
pub async fn serve(
    listener: TcpListener,
    router: impl Into<SwappableRouter>,
    limits: &ServerLimits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_with_tls(None, listener, router, limits, shutdown).await
}

/// Serves as [`serve`] does, over TLS if `tls` is given. A handshake counts as a connection, and is aborted when the
/// server stops.
///
/// # Errors
/// As [`serve`].
pub async fn serve_with_tls(
    tls: Option<Arc<Tls>>,
    listener: TcpListener,
    router: impl Into<SwappableRouter>,
    limits: &ServerLimits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    if limits.connections == 0 || limits.connections_per_address == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a connection limit is zero"));
    }
    let (http, router) = (http(limits), router.into());
    let table = ConnectionTable::new(limits);
    let mut refusals = Refusals::default();
    let stopping = GracefulShutdown::new();
    let (mut connections, mut handshakes) = (JoinSet::new(), JoinSet::new());
    let mut back_off = MIN_BACKOFF;
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            Some(done) = handshakes.join_next() => if let Ok(Some((connection, stream))) = done {
                let served = Connection::run(connection, http.clone(), stream, stopping.watcher());
                connections.spawn(served.boxed());
            },
            accepted = accept(&listener, &table) => match accepted {
                Ok((stream, peer, socket)) => {
                    back_off = MIN_BACKOFF;
                    let Some(admitted) = table.admit(peer, socket) else {
                        drop(stream);
                        router.refused.increment(1);
                        if let Some(count) = refusals.add(Instant::now()) {
                            let client = peer.ip().to_canonical();
                            tracing::warn!(count, %client, "connections were refused: no slot is free and none is idle");
                        }
                        continue;
                    };
                    let (connection, stream) = Connection::new(peer, admitted, stream, &router, limits);
                    if let Some(tls) = tls.clone() {
                        handshakes.spawn(connection.accept_tls(tls, stream, limits.header_timeout));
                    } else {
                        let served = connection.run(http.clone(), Box::new(stream), stopping.watcher());
                        connections.spawn(served.boxed());
                    }
                }
                Err(error) if is_connection_error(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "connections cannot be accepted at the moment");
                    tokio::select! {
                        () = &mut shutdown => break,
                        () = sleep(back_off) => back_off = MAX_BACKOFF.min(back_off * 2),
                    }
                }
            },
        }
    }
    drop((listener, handshakes));
    table.stop();
    drain(stopping, connections, limits.grace).await;
    Ok(())
}

/// Completes when the process receives SIGTERM or SIGINT (Ctrl-C) after this call.
///
/// Call it within a tokio runtime. If a signal handler cannot be installed, the failure is logged and the signal
/// terminates the process as usual.
pub fn stop_signal() -> impl Future<Output = ()> {
    let terminate = on_signal(SignalKind::terminate());
    let interrupt = on_signal(SignalKind::interrupt());
    async {
        tokio::select! {
            () = terminate => {}
            () = interrupt => {}
        }
    }
}

fn on_signal(kind: SignalKind) -> impl Future<Output = ()> {
    let heard = signal(kind);
    async move {
        match heard {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(error) => {
                tracing::warn!(%error, signal = kind.as_raw_value(), "cannot listen for a stop signal");
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
        .max_buf_size(limits.header_bytes.max(MAX_READ_BUFFER));
    http
}

/// Accepts the next connection once a socket is available.
async fn accept(
    listener: &TcpListener,
    table: &ConnectionTable,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let socket = table.socket().await?;
    let (stream, peer) = listener.accept().await?;
    // This fails only if the client has disconnected, which the first read reports.
    let _gone = stream.set_nodelay(true);
    Ok((stream, peer, socket))
}

/// Whether a client disconnected before it was accepted, so that the next accept needs no delay.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
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
