//! The bodies of requests and responses. A large body waits for turns. If the service does not read a request's body to its
//! end, the rest is discarded, so that the next request on the connection finds its beginning; if there is too much of it, the
//! response announces that the connection closes.

use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Buf, Bytes, Frame, Incoming, SizeHint};
use tokio::time::sleep;

use crate::base::tasks::spawn;
use crate::http::body::poll_twice;

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

/// The most bytes of an unread body that are discarded.
const MAX_DISCARDED: usize = 64 * 1024;

/// Keeps what is left of a request's body that the service drops.
pub(super) fn keep_rest(body: Incoming, slot: &Slot) {
    if !body.is_end_stream() {
        *slot.unread.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
    }
}

/// Discards the rest of the current request's body beside the response, for at most `limit`, and until the server stops. hyper
/// closes the connection if the rest does not arrive by then.
///
/// Returns false if the response must announce that the connection closes: if the rest is too long, its end is unknown, or it is
/// not `expected` to arrive.
pub(super) async fn discard_rest(slot: &Arc<Slot>, limit: Duration, expected: bool) -> bool {
    let rest = slot.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(rest) = rest else { return true };
    if !expected {
        return false;
    }
    let announced = rest.size_hint().exact();
    let body = TurnBody::new(rest, Arc::clone(slot), |_, _| {});
    if announced.is_none() {
        // The end of a chunked body usually came with its head.
        return poll_twice(pin!(discard(body))).await.unwrap_or(false);
    }
    if announced.is_some_and(|bytes| bytes > MAX_DISCARDED as u64) {
        return false;
    }
    let slot = Arc::clone(slot);
    slot.is_arriving.store(true, Ordering::Relaxed);
    spawn(async move {
        tokio::select! {
            _ = discard(body) => {}
            () = sleep(limit) => {}
            () = slot.stopping() => {}
        }
        slot.is_arriving.store(false, Ordering::Relaxed);
    });
    true
}

/// Reads a body to its end. Returns false if it is too long or breaks off.
async fn discard(mut body: TurnBody<Incoming>) -> bool {
    let mut left = MAX_DISCARDED;
    while let Some(frame) = body.frame().await {
        let size = frame.map(|frame| frame.data_ref().map_or(0, Bytes::len));
        match size.ok().and_then(|size| left.checked_sub(size)) {
            Some(less) => left = less,
            None => return false,
        }
    }
    true
}
