//! Whether a connection is idle, so that it may be closed for another one.
//!
//! A connection is active from the first byte of a request until the last byte of its answer is with the kernel.
//! Requests change one atomic value and take no lock, unless the table had found the connection active while it
//! looked for an idle one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Buf, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::Slot;
use super::turns::Waiting;

/// The lowest bits of the state: the phase. The bits above [`UNLISTED`] are the moment since which it is idle.
const PHASE: u64 = 0b11;
/// No byte of a request came since the last answer.
const IDLE: u64 = 0;
/// A request arrives or is under way.
const ACTIVE: u64 = 1;
/// The answer is complete; its last bytes may not be with the kernel yet.
const ANSWERED: u64 = 2;
/// The table gave its slot to another connection.
const CLOSED: u64 = 3;
/// The table found it active and took it off its list of idle connections: it lists itself once it is idle.
const UNLISTED: u64 = 0b100;
const MOMENT: u32 = 3;

/// The size of a part of a body that uses up a turn, in bytes.
const LARGE_PART: usize = 16 * 1024;

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Activity(AtomicU64);

/// What became of an attempt to close a connection that seemed idle.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It is closed: no request begins on it any more.
    Closed,
    /// It is idle, but only since this later moment.
    IdleSince(u64),
    /// A request arrives or is under way. [`Slot::flushed`] lists it once it is idle.
    Active,
}

impl Activity {
    /// A connection that is idle since `moment`.
    pub(super) fn idle(moment: u64) -> Self {
        Self(AtomicU64::new(moment << MOMENT | IDLE))
    }

    /// Notes that a request arrives, or goes on. False if the connection is closed.
    pub(super) fn begin(&self) -> bool {
        let begun = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            matches!(state & PHASE, IDLE | ANSWERED).then_some(state & UNLISTED | ACTIVE)
        });
        begun.is_ok() || self.0.load(Ordering::Acquire) & PHASE == ACTIVE
    }

    /// Notes that no more of an answer will come.
    pub(super) fn end(&self) {
        let end = |state| (state & PHASE == ACTIVE).then_some(state & UNLISTED | ANSWERED);
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, end);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == ANSWERED
    }

    /// Notes that an answer is with the kernel. True if the connection is on no list.
    pub(super) fn rest(&self, moment: u64) -> bool {
        let before = self.0.swap(moment << MOMENT | IDLE, Ordering::AcqRel);
        before & UNLISTED != 0
    }

    /// Closes the connection if it is idle since `moment`.
    pub(super) fn close(&self, moment: u64) -> Attempt {
        let mut state = self.0.load(Ordering::Acquire);
        loop {
            let (next, attempt) = match (state & PHASE, state >> MOMENT) {
                (IDLE, since) if since > moment => return Attempt::IdleSince(since),
                (IDLE, _) => (CLOSED, Attempt::Closed),
                _ => (state | UNLISTED, Attempt::Active),
            };
            match self.0.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return attempt,
                Err(changed) => state = changed,
            }
        }
    }
}

/// The stream of a connection, which notes when a request arrives and when an answer has left.
pub(super) struct WatchedStream<S> {
    stream: S,
    slot: Arc<Slot>,
}

impl<S> WatchedStream<S> {
    pub(super) fn new(stream: S, slot: Arc<Slot>) -> Self {
        Self { stream, slot }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.slot.begin_request()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes only when its own buffer is empty, and TLS only after its records are written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.slot.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of an answer, which notes when no more of it will come.
pub(super) struct WatchedBody<B> {
    body: B,
    slot: Arc<Slot>,
}

impl<B> WatchedBody<B> {
    pub(super) fn new(body: B, slot: Arc<Slot>) -> Self {
        Self { body, slot }
    }
}

impl<B> Drop for WatchedBody<B> {
    fn drop(&mut self) {
        self.slot.end_answer();
    }
}

impl<B: Body + Unpin> Body for WatchedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body of which a large part is followed by another only in the client's turn: reading and sending them is work on a
/// thread that serves others too.
pub(super) struct InTurns<B> {
    body: B,
    slot: Arc<Slot>,
    has_turn: bool,
    waiting: Waiting,
}

impl<B> InTurns<B> {
    /// A body in the turn of its request.
    pub(super) fn new(body: B, slot: Arc<Slot>) -> Self {
        Self { body, slot, has_turn: true, waiting: Waiting::default() }
    }
}

impl<B: Body + Unpin> Body for InTurns<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = &mut *self;
        if !this.has_turn {
            ready!(this.slot.poll_turn(&mut this.waiting, cx));
            this.has_turn = true;
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        let size = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Buf::remaining),
            _ => 0,
        };
        this.has_turn = size < LARGE_PART;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_closed_and_takes_no_request_afterwards() {
        let activity = Activity::idle(5);
        assert_eq!(activity.close(5), Attempt::Closed);
        assert!(!activity.begin());
    }

    #[test]
    fn a_request_keeps_its_connection_until_its_answer_has_left() {
        let activity = Activity::idle(5);
        assert!(activity.begin() && activity.begin());
        assert_eq!(activity.close(5), Attempt::Active);
        activity.end();
        assert_eq!(activity.close(5), Attempt::Active);
        assert!(activity.is_answered() && activity.rest(9), "it was taken off the list");
        assert_eq!(activity.close(5), Attempt::IdleSince(9));
        assert!(activity.begin());
        activity.end();
        assert!(!activity.rest(12), "nobody looked for an idle connection meanwhile");
        assert_eq!(activity.close(12), Attempt::Closed);
    }

    #[test]
    fn an_answer_that_ends_while_none_is_due_changes_nothing() {
        let activity = Activity::idle(5);
        activity.end();
        assert!(!activity.is_answered());
    }
}
