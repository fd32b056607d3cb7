//! A client's TCP stream with two manners that hyper leaves to it: a write that makes no progress
//! ends, and a close does not destroy the answer before it.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// How long a closing socket waits for more from a client that is silent.
const QUIET: Duration = Duration::from_millis(250);

/// How long it takes in what a client goes on sending.
const LINGER: Duration = Duration::from_secs(5);

/// The stream of one connection.
pub(super) struct Socket {
    stream: TcpStream,
    /// The time that a write may wait for the client to take in anything at all.
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    lingering: Option<Lingering>,
}

struct Lingering {
    end: Instant,
    quiet: Pin<Box<Sleep>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, stalled: None, lingering: None }
    }

    /// Passes on what a write came to; an error in place of a wait longer than `patience`.
    fn unless_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
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
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Says that no more will come, then takes in what the client still sends, for a while.
    ///
    /// Closing a socket with unread bytes makes the kernel reset the connection, and a client that
    /// is still sending its too large body would never read the answer that says so.
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
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() && lingering.goes_on() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return lingering.quiet.as_mut().poll(cx).map(Ok),
            }
        }
    }
}

impl Lingering {
    fn start() -> Self {
        Self { end: Instant::now() + LINGER, quiet: Box::pin(sleep(QUIET)) }
    }

    /// Counts the silence anew; false once the whole time is up.
    fn goes_on(&mut self) -> bool {
        let now = Instant::now();
        self.quiet.as_mut().reset(self.end.min(now + QUIET));
        now < self.end
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair(patience: Duration) -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        (Socket::new(stream, patience), client)
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_given_up() {
        let (mut socket, _client) = pair(Duration::from_millis(50)).await;
        let error = socket.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_is_not() {
        let (mut socket, mut client) = pair(Duration::from_millis(300)).await;
        let reader = async {
            let mut chunk = vec![0; 2 << 20];
            for _ in 0..8 {
                sleep(Duration::from_millis(50)).await;
                client.read_exact(&mut chunk).await.unwrap();
            }
        };
        let bytes = vec![0; 16 << 20];
        let (written, ()) = tokio::join!(socket.write_all(&bytes), reader);
        written.unwrap();
    }

    #[tokio::test]
    async fn a_client_still_sending_reads_the_answer() {
        let (mut socket, mut client) = pair(Duration::from_secs(1)).await;
        let server = async {
            socket.write_all(b"413").await.unwrap();
            socket.shutdown().await.unwrap();
            drop(socket);
        };
        let sender = async {
            client.write_all(&vec![0; 16 << 20]).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"413");
        };
        tokio::join!(server, sender);
    }

    #[tokio::test]
    async fn a_silent_client_is_not_waited_for() {
        let (mut socket, _client) = pair(Duration::from_secs(1)).await;
        let start = Instant::now();
        socket.shutdown().await.unwrap();
        assert!(start.elapsed() < LINGER);
    }
}
