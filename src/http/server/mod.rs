//! The accept loop: HTTP/1.1 connections, by TLS or not, with the limits that `axum::serve` does not have.
//!
//! hyper's parser refuses more than 100 headers (431; a limit of our own would cost an allocation a
//! request) and what is no HTTP (400), both without a body. Its header timeout runs from a
//! connection's start and again from each answer, so it ends idle connections too.

mod activity;
mod connection;
mod connections;
mod host;
mod turns;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::client::TrustedProxies;
use super::front::Front;
use super::tls::Tls;
use connection::Connection;
use connections::ConnectionTable;

/// Sockets that a listener may open beyond [`ServerLimits::connections`].
pub const EXTRA_SOCKETS: usize = connections::LOOPBACK_RESERVE + connections::CLOSING_SOCKETS;

/// What one connection may hold in memory, in bytes, of what it sends before a handler takes it
/// (hyper panics below 8 KiB).
const READ_BUFFER: usize = 64 * 1024;

const FIRST_BACK_OFF: Duration = Duration::from_millis(50);
const LAST_BACK_OFF: Duration = Duration::from_secs(1);

/// What clients may take of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at one time. When all are open, the one that is idle longest is closed for a new one, of the
    /// address that holds most; where none is idle the new one is closed. Loopback addresses get some more.
    /// Default 4096.
    pub connections: usize,
    /// Connections of one IPv4 address or IPv6 network of 64 bits at one time. When all are open, the one that is
    /// idle longest is closed for a new one; where none is idle the new one is closed. Default 1024.
    pub connections_per_address: usize,
    /// Proxies whose connections are not limited by address. Default none.
    pub trusted_proxies: TrustedProxies,
    /// The age from which on a connection is closed after its next answer. Default 1 h.
    pub connection_age: Duration,
    /// The time for a request's line and headers to arrive, and so also the time that a connection
    /// may be idle; on a connection's first request the TLS handshake counts in. Default 30 s.
    pub header_timeout: Duration,
    /// The size of a request's line and headers, in bytes. Default 32 KiB.
    pub header_bytes: usize,
    /// The time in which a client must take in 64 KiB of the answer it is sent, or what is left of it. Default 30 s.
    pub write_timeout: Duration,
    /// The time that requests under way get to finish once the server is to stop. Default 30 s.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_address: 1024,
            trusted_proxies: TrustedProxies::default(),
            connection_age: Duration::from_hours(1),
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
/// Each request carries its [`Peer`](super::client::Peer). Dropping this future cuts everything.
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
    if limits.connections == 0 || limits.connections_per_address == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a connection limit is zero"));
    }
    let (http, front) = (http(limits), front.into());
    let table = ConnectionTable::new(limits);
    let mut refusals = Refusals::default();
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
            accepted = accept(&listener, &table) => match accepted {
                Ok((stream, peer, socket)) => {
                    back_off = FIRST_BACK_OFF;
                    let Some(admitted) = table.admit(peer, socket) else {
                        drop(stream);
                        front.count_refused();
                        refusals.note(peer);
                        continue;
                    };
                    let (connection, stream) = Connection::new(peer, admitted, stream, &front, limits);
                    if let Some(tls) = tls.clone() {
                        handshakes.spawn(connection.secure(tls, stream, limits.header_timeout));
                    } else {
                        connections.spawn(connection.run(http.clone(), stream, stopping.watcher()));
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

/// The next connection, once there is a socket for it.
async fn accept(
    listener: &TcpListener,
    table: &ConnectionTable,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let socket = table.socket().await?;
    let (stream, peer) = listener.accept().await?;
    // Fails only where the client is gone already, which the first read tells.
    let _gone = stream.set_nodelay(true);
    Ok((stream, peer, socket))
}

/// Connections that were refused since the log last told so.
#[derive(Default)]
struct Refusals {
    count: u64,
    logged: Option<Instant>,
}

impl Refusals {
    /// Logs refused connections, at most once a second.
    fn note(&mut self, peer: SocketAddr) {
        self.count += 1;
        if self.logged.is_none_or(|logged| logged.elapsed() >= Duration::from_secs(1)) {
            let (count, client) = (self.count, peer.ip().to_canonical());
            tracing::warn!(count, %client, "connections were refused: no slot is free and none is idle");
            *self = Self { count: 0, logged: Some(Instant::now()) };
        }
    }
}

/// The client went away while it waited to be accepted; the next one may be tried at once.
fn concerns_one_client(error: &io::Error) -> bool {
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
