//! Request bodies that the service did not read to their end. The rest is discarded, so that the next request on the connection
//! finds its beginning; if there is too much of it, the response announces that the connection closes.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use tokio::time::sleep;

use super::connection_table::Slot;
use super::turns::TurnBody;
use crate::http::body::poll_twice;

/// The most bytes of an unread body that are discarded.
const MAX_DISCARDED: usize = 64 * 1024;

/// Keeps what is left of a request's body that the service drops.
pub(super) fn keep_rest(body: Incoming, slot: &Slot) {
    if !body.is_end_stream() {
        slot.unread().keep(body);
    }
}

/// Discards the rest of the current request's body beside the response, for at most `limit`, and until the server stops. hyper
/// closes the connection if the rest does not arrive by then.
///
/// Returns false if the response must announce that the connection closes: if the rest is too long, its end is unknown, or it is
/// not `expected` to arrive.
pub(super) async fn discard_rest(slot: &Arc<Slot>, limit: Duration, expected: bool) -> bool {
    let rest = slot.unread().take();
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
    slot.unread().set_arriving(true);
    tokio::spawn(async move {
        tokio::select! {
            _ = discard(body) => {}
            () = sleep(limit) => {}
            () = slot.stopping() => {}
        }
        slot.unread().set_arriving(false);
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
