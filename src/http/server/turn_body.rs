//! The bodies of requests and responses.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Buf, Frame, SizeHint};

use super::connection_table::Slot;
use super::turns::TurnWaiter;

/// A part of a body of at least this many bytes uses up a turn.
const TURN_BYTES: usize = 16 * 1024;

/// A body that waits for the client's turn after each large part, because reading and sending it occupies a thread
/// that serves other clients too.
pub(super) struct TurnBody<B> {
    /// `None` only while this is dropped.
    body: Option<B>,
    slot: Arc<Slot>,
    has_turn: bool,
    waiting: TurnWaiter,
    dropped: fn(B, &Slot),
}

impl<B> TurnBody<B> {
    /// Wraps a body. Its first part uses the turn of the request. `dropped` gets the body when this is dropped.
    pub(super) fn new(body: B, slot: Arc<Slot>, dropped: fn(B, &Slot)) -> Self {
        let waiting = TurnWaiter::default();
        Self { body: Some(body), slot, has_turn: true, waiting, dropped }
    }
}

impl<B> Drop for TurnBody<B> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            (self.dropped)(body, &self.slot);
        }
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
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        if !this.has_turn {
            ready!(this.slot.poll_large_part(&mut this.waiting, cx));
            this.has_turn = true;
        }
        let frame = ready!(Pin::new(body).poll_frame(cx));
        let size = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Buf::remaining),
            _ => 0,
        };
        this.has_turn = size < TURN_BYTES;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
