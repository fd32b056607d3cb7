//! Tracks whether a connection is idle, so that it may be closed to make room for another.
//!
//! A connection is active from the first byte of a request until the kernel has the last byte of the response. A
//! request updates one atomic value. It takes a lock only if the table found the connection active while it searched
//! for an idle one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Buf, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_table::Slot;
use super::turns::TurnWaiter;

/// The lowest bits of the state: the phase. The bits above [`OFF_LIST`] hold the time since which the connection is
/// idle.
const PHASE: u64 = 0b11;
/// No byte was received since the last response.
const IDLE: u64 = 0;
/// A request is arriving or in progress.
const ACTIVE: u64 = 1;
/// The response is complete, but the kernel may not have all of it yet.
const ANSWERED: u64 = 2;
/// The table gave the slot to another connection.
const CLOSED: u64 = 3;
/// The table found the connection active and removed it from the idle list. The connection adds itself when it is
/// idle.
const OFF_LIST: u64 = 0b100;
const TIME_SHIFT: u32 = 3;

/// A part of a body of at least this many bytes uses up a turn.
const TURN_BYTES: usize = 16 * 1024;

/// The state of one connection.
#[derive(Debug)]
pub(super) struct ConnectionState(AtomicU64);

/// The result of an attempt to close an idle connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CloseAttempt {
    /// The connection is closed and accepts no further requests.
    Closed,
    /// The connection is idle, but since this later time.
    IdleSince(u64),
    /// The connection is active. [`Slot::flushed`] lists it when it is idle.
    Active,
}

impl ConnectionState {
    /// Creates the state of a connection that is idle since `moment`.
    pub(super) fn idle(moment: u64) -> Self {
        Self(AtomicU64::new(moment << TIME_SHIFT | IDLE))
    }

    /// Marks the connection as active. Returns false if it is closed.
    pub(super) fn begin(&self) -> bool {
        let begun = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            matches!(state & PHASE, IDLE | ANSWERED).then_some(state & OFF_LIST | ACTIVE)
        });
        begun.is_ok() || self.0.load(Ordering::Acquire) & PHASE == ACTIVE
    }

    /// Marks the response as complete.
    pub(super) fn end(&self) {
        let end = |state| (state & PHASE == ACTIVE).then_some(state & OFF_LIST | ANSWERED);
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, end);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == ANSWERED
    }

    /// Marks the connection as idle once the kernel has the response. Returns true if the connection must be added to
    /// the idle list.
    pub(super) fn finish(&self, moment: u64) -> bool {
        let before = self.0.swap(moment << TIME_SHIFT | IDLE, Ordering::AcqRel);
        before & OFF_LIST != 0
    }

    /// Closes the connection if it is idle since `moment`.
    pub(super) fn close(&self, moment: u64) -> CloseAttempt {
        let mut state = self.0.load(Ordering::Acquire);
        loop {
            let (next, attempt) = match (state & PHASE, state >> TIME_SHIFT) {
                (IDLE, since) if since > moment => return CloseAttempt::IdleSince(since),
                (IDLE, _) => (CLOSED, CloseAttempt::Closed),
                _ => (state | OFF_LIST, CloseAttempt::Active),
            };
            match self.0.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return attempt,
                Err(changed) => state = changed,
            }
        }
    }
}

/// The stream of a connection. It records when a request arrives and when a response was sent.
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

/// The body of a response. It records when the response is complete.
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

/// A body that waits for the client's turn after each large part, because reading and sending it occupies a thread
/// that serves other clients too.
pub(super) struct TurnBody<B> {
    body: B,
    slot: Arc<Slot>,
    has_turn: bool,
    waiting: TurnWaiter,
}

impl<B> TurnBody<B> {
    /// Wraps a body. Its first part uses the turn of the request.
    pub(super) fn new(body: B, slot: Arc<Slot>) -> Self {
        Self { body, slot, has_turn: true, waiting: TurnWaiter::default() }
    }
}

impl<B: Body + Unpin> Body for TurnBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = &mut *self;
        if !this.has_turn {
            ready!(this.slot.poll_large_part(&mut this.waiting, cx));
            this.has_turn = true;
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        let size = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Buf::remaining),
            _ => 0,
        };
        this.has_turn = size < TURN_BYTES;
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
        let activity = ConnectionState::idle(5);
        assert_eq!(activity.close(5), CloseAttempt::Closed);
        assert!(!activity.begin());
    }

    #[test]
    fn a_request_keeps_its_connection_until_its_answer_has_left() {
        let activity = ConnectionState::idle(5);
        assert!(activity.begin() && activity.begin());
        assert_eq!(activity.close(5), CloseAttempt::Active);
        activity.end();
        assert_eq!(activity.close(5), CloseAttempt::Active);
        assert!(activity.is_answered() && activity.finish(9), "the table removed it from the list");
        assert_eq!(activity.close(5), CloseAttempt::IdleSince(9));
        assert!(activity.begin());
        activity.end();
        assert!(!activity.finish(12), "the table kept it on the list");
        assert_eq!(activity.close(12), CloseAttempt::Closed);
    }

    #[test]
    fn an_answer_that_ends_while_none_is_due_changes_nothing() {
        let activity = ConnectionState::idle(5);
        activity.end();
        assert!(!activity.is_answered());
    }
}
