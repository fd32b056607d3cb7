//! How a large answer leaves: counted in the budget, in pieces that are given back as they leave, and compressed off
//! the request threads.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{mem, thread};

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{FutureExt, stream};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

use crate::background::in_background;
use crate::error::{Error, Result};
use crate::fair::{Consumer, FairLimits, FairQueue};

use super::budget::{Charge, MemoryBudget, Payer, UNCOUNTED};

/// What an answer leaves in, in bytes.
const PIECE: usize = 64 * 1024;
/// How many pieces are compressed in one turn.
const PIECES_A_TURN: usize = 4;
/// What compressing one answer takes besides the answer, in bytes: zlib's tables, and what it has written.
const COMPRESSOR: usize = 512 * 1024;

/// An extension of a response whose headers promise gzip and whose body is still plain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uncompressed;

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
        let (parts, body) = response.into_parts();
        match whole(body).and_then(|bytes| self.body(&bytes, packs, client, payer)) {
            Ok(body) => Response::from_parts(parts, body),
            Err(error) => {
                let mut refused = error.clone().into_response();
                *refused.extensions_mut() = parts.extensions;
                refused.extensions_mut().insert(error);
                refused
            }
        }
    }

    fn body(&self, bytes: &Bytes, packs: bool, client: IpAddr, payer: Payer) -> Result<Body> {
        let compressor = if packs { COMPRESSOR } else { 0 };
        let counted = bytes.len() + compressor;
        let (mut charge, pin) = if bytes.is_unique() {
            (self.budget.take(client, payer, counted)?, None)
        } else {
            let pin = self.budget.pin(bytes, payer)?;
            (self.budget.take_of_client(client, payer, counted)?, Some(pin))
        };
        let pieces = Pieces::cut(bytes, pin.as_ref(), &mut charge);
        Ok(if packs { self.compressed(pieces, charge, client) } else { Body::new(pieces) })
    }

    /// The pieces as one gzip stream. They are compressed one turn after the other, while the client reads.
    fn compressed(&self, pieces: Pieces, charge: Charge, client: IpAddr) -> Body {
        let packer = GzEncoder::new(Vec::new(), Compression::fast());
        let (turns, consumer) = (self.turns.clone(), Consumer::address(client));
        let start = Some(Packing { pieces, packer, _compressor: charge });
        let gzip = stream::try_unfold(start, move |packing| {
            let turns = turns.clone();
            async move {
                let Some(packing) = packing else { return Ok::<_, io::Error>(None) };
                let turn = turns.acquire(consumer).await;
                let turn = turn.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
                let step = in_background(move || {
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

/// A body that gives its memory back as it leaves.
struct Pieces {
    pieces: VecDeque<Bytes>,
    left: u64,
}

/// A piece, and what is counted for it until the connection has written it.
struct Piece {
    bytes: Bytes,
    _charge: Charge,
    _pin: Option<Arc<Charge>>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Pieces {
    /// Cuts `bytes`, and gives each piece its part of `charge`. A buffer that others share (`pin`) is not copied;
    /// of any other each piece becomes memory of its own, which is freed as it leaves.
    fn cut(bytes: &Bytes, pin: Option<&Arc<Charge>>, charge: &mut Charge) -> Self {
        let piece = |part: &[u8]| {
            let copied = || Bytes::copy_from_slice(part);
            let bytes = pin.map_or_else(copied, |_| bytes.slice_ref(part));
            let (charge, pin) = (charge.split(part.len()), pin.cloned());
            Bytes::from_owner(Piece { bytes, _charge: charge, _pin: pin })
        };
        Self { left: bytes.len() as u64, pieces: bytes.chunks(PIECE).map(piece).collect() }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// An answer that is being compressed.
struct Packing {
    pieces: Pieces,
    packer: GzEncoder<Vec<u8>>,
    _compressor: Charge,
}

impl Packing {
    /// Compresses some pieces; answers what came out, and what is left to do.
    fn step(mut self) -> io::Result<(Bytes, Option<Self>)> {
        for piece in self.pieces.pieces.drain(..PIECES_A_TURN.min(self.pieces.pieces.len())) {
            self.packer.write_all(&piece)?;
        }
        if self.pieces.pieces.is_empty() {
            return Ok((self.packer.finish()?.into(), None));
        }
        Ok((mem::take(self.packer.get_mut()).into(), Some(self)))
    }
}

#[cfg(test)]
mod tests;
