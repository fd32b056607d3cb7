//! A client's TCP stream with four additions to hyper: it disconnects clients that read too slowly, limits the unsent data in
//! the kernel, closes without losing the last response, and tells the connection's slot when requests arrive and when
//! responses were sent.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use super::connection_table::Slot;

/// The bytes that a client must accept per write timeout, unless it accepts everything. With the default of 30
/// seconds this is about two thirds of the speed of a 28.8 kbit/s modem.
const MIN_PROGRESS: usize = 64 * 1024;

/// The most unsent bytes in the kernel, so that unread data stays where it is counted.
#[cfg(target_os = "linux")]
const MAX_UNSENT: u32 = 128 * 1024;

/// The time to wait for more data from a silent client when closing.
const LINGER_IDLE_TIMEOUT: Duration = Duration::from_millis(250);

/// The longest time to read and discard data from a client when closing.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

/// The stream of one connection.
pub(super) struct Socket {
    stream: TcpStream,
    /// The time in which a client must accept [`MIN_PROGRESS`] bytes, from the first write that blocks.
    write_timeout: Duration,
    slot: Arc<Slot>,
    stalled: Option<Stalled>,
    lingering: Option<Lingering>,
}

/// A write that is blocked by a slow client.
struct Stalled {
    end: Pin<Box<Sleep>>,
    /// The bytes accepted since the write blocked.
    taken: usize,
}

struct Lingering {
    end: Instant,
    quiet: Pin<Box<Sleep>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, write_timeout: Duration, slot: Arc<Slot>) -> Self {
        // If the system does not support the option, its own limit applies.
        #[cfg(target_os = "linux")]
        let _unsupported = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT);
        Self { stream, write_timeout, slot, stalled: None, lingering: None }
    }

    /// Returns the result of a write, or an error if the write has been blocked for too long.
    fn unless_stalled(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            let taken = *written.as_ref().unwrap_or(&0);
            self.stalled = self.stalled.take().and_then(|stalled| stalled.after(taken));
            return Poll::Ready(written);
        }
        let patience = self.write_timeout;
        let start = || Stalled { end: Box::pin(sleep(patience)), taken: 0 };
        ready!(self.stalled.get_or_insert_with(start).end.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Stalled {
    /// Adds accepted bytes. Returns `None` once the client has accepted enough.
    fn after(self, bytes: usize) -> Option<Self> {
        let taken = self.taken + bytes;
        (taken < MIN_PROGRESS).then_some(Self { taken, ..self })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before && !self.slot.is_arriving.load(Ordering::Relaxed) {
            self.slot.begin_request()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.unless_stalled(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.unless_stalled(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A flush happens only after everything was written: hyper's own buffer is empty, and so is that of TLS.
        self.stalled = None;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.slot.flushed();
        Poll::Ready(Ok(()))
    }

    /// Sends the end of the stream, then reads and discards what the client still sends, for a limited time.
    ///
    /// Closing a socket with unread data makes the kernel reset the connection. A client that is still sending an
    /// oversized body would then never read the response.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, lingering, .. } = &mut *self;
        if lingering.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let lingering = lingering.get_or_insert_with(Lingering::start);
        loop {
            let mut discarded = [0; 4096];
            let mut buffer = ReadBuf::new(&mut discarded);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() && lingering.extend() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return lingering.quiet.as_mut().poll(cx).map(Ok),
            }
        }
    }
}

impl Lingering {
    fn start() -> Self {
        Self { end: Instant::now() + LINGER_TIMEOUT, quiet: Box::pin(sleep(LINGER_IDLE_TIMEOUT)) }
    }

    /// Restarts the wait for silence. Returns false once the total time is over.
    fn extend(&mut self) -> bool {
        let now = Instant::now();
        self.quiet.as_mut().reset(self.end.min(now + LINGER_IDLE_TIMEOUT));
        now < self.end
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::http::server::ServerLimits;
    use crate::http::server::connection_table::ConnectionTable;
    use crate::wait::TEST_TIMEOUT;

    /// A time limit that a test waits for.
    const SHORT_TIME: Duration = Duration::from_millis(50);

    /// A time limit that no test reaches.
    const NEVER: Duration = Duration::from_hours(1);

    async fn pair(patience: Duration) -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let table = ConnectionTable::new(&ServerLimits::default());
        let admitted = table.admit(peer, table.socket().await.unwrap()).unwrap();
        (Socket::new(stream, patience, admitted.slot), client)
    }

    impl Socket {
        /// Returns when the blocked write fails, or `None` if no write is blocked.
        fn deadline(&self) -> Option<Instant> {
            self.stalled.as_ref().map(|stalled| stalled.end.deadline())
        }
    }

    #[tokio::test]
    async fn client_that_reads_nothing_is_disconnected() {
        let (mut socket, _client) = pair(SHORT_TIME).await;
        let error = socket.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn client_that_reads_below_the_minimum_rate_is_disconnected() {
        let (mut socket, _client) = pair(SHORT_TIME).await;
        let _ = poll_fn(|cx| Poll::Ready(socket.unless_stalled(cx, Poll::Pending))).await;
        let deadline = socket.deadline();
        assert!(deadline.is_some());
        for _ in 0..3 {
            poll_fn(|cx| socket.unless_stalled(cx, Poll::Ready(Ok(1)))).await.unwrap();
            assert_eq!(socket.deadline(), deadline);
        }
        let error = poll_fn(|cx| socket.unless_stalled(cx, Poll::Pending)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn client_at_the_minimum_rate_or_with_an_empty_buffer_has_the_whole_time_again() {
        let (mut socket, mut client) = pair(NEVER).await;
        let bytes = vec![0; 1 << 20];
        let mut sent = socket.write(&bytes).await.unwrap();
        while let Some(written) = socket.write(&bytes).now_or_never() {
            sent += written.unwrap();
        }
        assert!(socket.deadline().is_some());
        client.read_exact(&mut vec![0; sent]).await.unwrap();
        let mut accepted = 0;
        while socket.deadline().is_some() {
            assert!(accepted < MIN_PROGRESS);
            accepted += socket.write(&bytes[..MIN_PROGRESS / 4]).await.unwrap();
        }
        assert!(accepted >= MIN_PROGRESS);
        while socket.write(&bytes).now_or_never().is_some() {}
        socket.flush().await.unwrap();
        assert_eq!(socket.deadline(), None);
    }

    #[tokio::test]
    async fn client_that_is_still_sending_receives_the_response() {
        let (mut socket, mut client) = pair(NEVER).await;
        let server = async {
            socket.write_all(b"413").await.unwrap();
            socket.shutdown().await.unwrap();
            drop(socket);
        };
        let sender = async {
            client.write_all(&vec![0; 16 << 20]).await.unwrap();
            client.shutdown().await.unwrap();
            let mut response = Vec::new();
            client.read_to_end(&mut response).await.unwrap();
            assert_eq!(response, b"413");
        };
        tokio::join!(server, sender);
    }

    #[tokio::test]
    async fn shutdown_does_not_wait_for_a_silent_client() {
        let (mut socket, _client) = pair(NEVER).await;
        timeout(TEST_TIMEOUT, socket.shutdown()).await.unwrap().unwrap();
    }
}
