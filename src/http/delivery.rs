//! How a large answer leaves: counted in the budget, in pieces that are given back as they leave, and compressed off
//! the request threads.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{mem, thread};

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

use crate::background::{Priority, in_background};
use crate::error::{Error, Result};
use crate::fair::{Consumer, FairLimits, FairQueue};

use super::budget::{Charge, MemoryBudget, Payer, UNCOUNTED};

/// What an answer leaves in, in bytes.
const PIECE: usize = 64 * 1024;
/// What a request thread cuts into pieces itself, in bytes: it copies them. Larger answers are cut in the background.
const CUT_AT_ONCE: usize = 1024 * 1024;
/// How many pieces are compressed in one turn.
const PIECES_A_TURN: usize = 4;
/// What compressing one answer takes besides the answer, in bytes: zlib's tables, and what it has written.
const COMPRESSOR: usize = 512 * 1024;

/// An extension of a response whose headers promise gzip and whose body is still plain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uncompressed;

/// An extension of a large answer to a request that has changed something. Such an answer is not refused while there
/// is any memory for it: a client that is refused sends the request again, which changes something again.
#[derive(Clone)]
pub(super) struct Changed {
    /// What was reserved for the answer before the change was made. An answer that has turned out larger is counted
    /// whole, and not refused.
    pub(super) reserved: Option<Arc<Charge>>,
}

/// Delivers large answers. Clones share the budget, and the threads that compress.
#[derive(Clone)]
pub struct Delivery {
    budget: MemoryBudget,
    /// Turns to compress, shared out among clients.
    turns: FairQueue,
}

impl Delivery {
    /// Delivers answers within this budget.
    pub fn new(budget: MemoryBudget) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let slots = (cores / 2).max(1);
        // An answer waits for one turn at a time, and the budget bounds the answers.
        let (waiting_each, waiting) = (usize::MAX, usize::MAX);
        let longest_wait = None;
        let limits = FairLimits { slots, slots_each: slots, waiting_each, waiting, longest_wait };
        Self { budget, turns: FairQueue::new(limits) }
    }

    /// The response, whose body leaves in pieces if it is large; 503 where the budget has no room for it. Its
    /// extensions say on whose behalf it is: a [`Payer`], or, of a public page, the [`Consumer`] whose page it is.
    pub(super) fn deliver(&self, mut response: Response, client: IpAddr) -> Response {
        if !is_large(&response) {
            return response;
        }
        let extensions = response.extensions_mut();
        let public = extensions.remove().map_or(Payer::Visitor, Payer::PublicPage);
        let payer = extensions.remove().unwrap_or(public);
        let packs = extensions.remove::<Uncompressed>().is_some();
        let changed = extensions.remove();
        let (parts, body) = response.into_parts();
        match whole(body).and_then(|bytes| self.body(bytes, packs, (client, payer), changed)) {
            Ok(body) => Response::from_parts(parts, body),
            Err(error) => {
                let mut refused = error.clone().into_response();
                *refused.extensions_mut() = parts.extensions;
                refused.extensions_mut().insert(error);
                refused
            }
        }
    }

    fn body(
        &self,
        bytes: Bytes,
        packs: bool,
        (client, payer): (IpAddr, Payer),
        changed: Option<Changed>,
    ) -> Result<Body> {
        let counted = bytes.len() + if packs { COMPRESSOR } else { 0 };
        let is_changed = changed.is_some();
        let reserved = changed.and_then(|changed| changed.reserved).and_then(Arc::into_inner);
        let (mut charge, pin) = if !bytes.is_unique() {
            let pin = self.budget.pin(&bytes, payer)?;
            (self.budget.take_of_client(client, payer, counted)?, Some(pin))
        } else if let Some(mut reserved) = reserved {
            reserved.force(counted);
            (reserved, None)
        } else {
            let taken = self.budget.take(client, payer, counted);
            let overdrawn =
                |over| if is_changed { self.budget.overdraw(counted) } else { Err(over) };
            (taken.or_else(overdrawn)?, None)
        };
        let whole = Whole { charge: charge.split(bytes.len()), bytes, pin };
        Ok(if packs {
            self.compressed(whole, charge, client)
        } else {
            Body::new(Pieces::of(whole))
        })
    }

    /// The answer as one gzip stream. It is compressed one turn after the other, while the client reads.
    fn compressed(&self, whole: Whole, charge: Charge, client: IpAddr) -> Body {
        let packer = GzEncoder::new(Vec::new(), Compression::fast());
        let (turns, consumer) = (self.turns.clone(), Consumer::address(client));
        let start =
            Packing { whole: Some(whole), pieces: VecDeque::new(), packer, _charge: charge };
        let gzip = stream::try_unfold(Some(start), move |packing| {
            let turns = turns.clone();
            async move {
                let Some(packing) = packing else { return Ok::<_, io::Error>(None) };
                let turn = turns.acquire(consumer).await;
                let turn = turn.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
                let step = in_background(Priority::Answer, move || {
                    let _turn = turn;
                    packing.step()
                });
                Ok(Some(step.await.map_err(io::Error::other)??))
            }
        });
        Body::from_stream(gzip)
    }
}

/// Whether the answer is one that is counted.
pub(super) fn is_large(response: &Response) -> bool {
    response.body().size_hint().exact().is_some_and(|size| size > UNCOUNTED as u64)
}

/// The body as the one buffer that it is. Every answer of known size is one.
pub(super) fn whole(mut body: Body) -> Result<Bytes> {
    let size = body.size_hint().exact();
    let frame = body.frame().now_or_never().flatten();
    let bytes =
        frame.transpose().map_err(Error::internal)?.and_then(|frame| frame.into_data().ok());
    let is_whole = |bytes: &Bytes| Some(bytes.len() as u64) == size;
    bytes.filter(is_whole).ok_or_else(|| Error::internal("an answer that is not one buffer"))
}

/// An answer that is counted, before it is cut into pieces.
struct Whole {
    bytes: Bytes,
    charge: Charge,
    /// Of a buffer that other answers share.
    pin: Option<Arc<Charge>>,
}

/// A piece, and what is counted for it until the connection has written it.
struct Piece<C> {
    bytes: Bytes,
    _counted: C,
}

impl<C> AsRef<[u8]> for Piece<C> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Whole {
    /// Cuts the answer. A buffer that others share is not copied, and all of it is counted until its last piece has
    /// left. Of any other each piece becomes memory of its own, with its part of the charge.
    fn cut(self) -> VecDeque<Bytes> {
        let Self { bytes, mut charge, pin } = self;
        if let Some(pin) = pin {
            let counted = Arc::new((charge, pin));
            let piece =
                |part| Piece { bytes: bytes.slice_ref(part), _counted: Arc::clone(&counted) };
            return bytes.chunks(PIECE).map(|part| Bytes::from_owner(piece(part))).collect();
        }
        // From the end, so that what was copied is freed on the way: the answer never takes its memory twice.
        let (mut rest, mut pieces) = (Vec::from(bytes), VecDeque::new());
        while !rest.is_empty() {
            let start = (rest.len() - 1) / PIECE * PIECE;
            let bytes = Bytes::copy_from_slice(rest.get(start..).unwrap_or_default());
            let piece = Piece { _counted: charge.split(bytes.len()), bytes };
            pieces.push_front(Bytes::from_owner(piece));
            rest.truncate(start);
            if start.is_multiple_of(CUT_AT_ONCE) {
                rest.shrink_to_fit();
            }
        }
        pieces
    }
}

/// A body that gives its memory back as it leaves.
struct Pieces {
    cut: VecDeque<Bytes>,
    /// Cuts the answer, if it is not cut yet.
    cutting: Option<BoxFuture<'static, Result<VecDeque<Bytes>>>>,
    left: u64,
}

impl Pieces {
    fn of(whole: Whole) -> Self {
        let left = whole.bytes.len() as u64;
        if whole.pin.is_some() || whole.bytes.len() <= CUT_AT_ONCE {
            return Self { cut: whole.cut(), cutting: None, left };
        }
        let cutting = in_background(Priority::Answer, move || whole.cut()).boxed();
        Self { cut: VecDeque::new(), cutting: Some(cutting), left }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        if let Some(cutting) = &mut self.cutting {
            let cut = ready!(cutting.poll_unpin(cx));
            self.cutting = None;
            self.cut = cut?;
        }
        let piece = self.cut.pop_front();
        self.left -= piece.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// An answer that is being compressed.
struct Packing {
    /// The answer, before the first turn.
    whole: Option<Whole>,
    pieces: VecDeque<Bytes>,
    packer: GzEncoder<Vec<u8>>,
    _charge: Charge,
}

impl Packing {
    /// Compresses some pieces; answers what came out, and what is left to do.
    fn step(mut self) -> io::Result<(Bytes, Option<Self>)> {
        if let Some(whole) = self.whole.take() {
            self.pieces = whole.cut();
        }
        for piece in self.pieces.drain(..PIECES_A_TURN.min(self.pieces.len())) {
            self.packer.write_all(&piece)?;
        }
        if self.pieces.is_empty() {
            return Ok((self.packer.finish()?.into(), None));
        }
        Ok((mem::take(self.packer.get_mut()).into(), Some(self)))
    }
}

#[cfg(test)]
mod tests;
