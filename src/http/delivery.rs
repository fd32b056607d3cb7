//! Sends large responses: charges them to the memory budget, sends them in pieces whose memory is released as they
//! leave, and compresses them off the request threads.

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

use crate::base::error::{Error, Result};
use crate::fair::fair_queue::{Consumer, FairQueue, FairQueueLimits};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::fair::memory_budget::{Charge, MIN_COUNTED_SIZE, MemoryBudget, Payer, RequestMemory};

/// The size of a piece, in bytes.
const CHUNK_SIZE: usize = 64 * 1024;
/// The largest response, in bytes, that is sent as one piece. Cutting copies, and the kernel usually accepts as much at
/// once.
const MAX_SINGLE_CHUNK: usize = 4 * CHUNK_SIZE;
/// The largest response, in bytes, that a request thread cuts itself. Cutting copies, so larger responses are cut in
/// the background.
const MAX_INLINE_SPLIT: usize = 1024 * 1024;
/// The number of pieces compressed in one step.
const CHUNKS_PER_STEP: usize = 4;
/// The memory for compressing one response, in bytes: zlib's tables and its output.
const COMPRESSOR_MEMORY: usize = 512 * 1024;

/// Marks a response whose headers announce gzip and whose body is not compressed yet. A response extension.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingGzip;

/// Sends large responses. Clones share the budget and the compression slots.
#[derive(Clone)]
pub struct ResponseDelivery {
    budget: MemoryBudget,
    /// Compression slots, shared fairly among clients.
    compression_queue: FairQueue,
}

impl ResponseDelivery {
    /// Creates a delivery that charges `budget`.
    pub fn new(budget: MemoryBudget) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let slots = (cores / 2).max(1);
        // A response waits for one slot at a time, and the budget bounds the number of responses.
        let limits = FairQueueLimits {
            slots,
            slots_per_consumer: slots,
            waiting_per_consumer: usize::MAX,
            waiting: usize::MAX,
            max_wait: None,
        };
        Self { budget, compression_queue: FairQueue::new(limits) }
    }

    /// Prepares the response for sending: a large body is charged and sent in pieces. Returns 503 if the budget has
    /// no room. If the request had a key, its tenant is an extension of the response: a [`Consumer`]. The response to a
    /// completed write has the [`RequestMemory`] as an extension.
    pub(super) fn deliver(&self, mut response: Response, client: IpAddr) -> Response {
        if !is_large(&response) {
            return response;
        }
        let extensions = response.extensions_mut();
        let payer = Payer { client, tenant: extensions.remove() };
        let packs = extensions.remove::<PendingGzip>().is_some();
        let memory = extensions.remove();
        let (parts, body) = response.into_parts();
        match collect_body(body).and_then(|bytes| self.body(bytes, packs, payer, memory)) {
            Ok(body) => Response::from_parts(parts, body),
            Err(error) => {
                let mut refused = error.clone().into_response();
                *refused.extensions_mut() = parts.extensions;
                refused.extensions_mut().insert(error);
                refused
            }
        }
    }

    /// Charges a body, and returns it in the form in which it is sent.
    fn body(
        &self,
        bytes: Bytes,
        packs: bool,
        payer: Payer,
        memory: Option<RequestMemory>,
    ) -> Result<Body> {
        let compressor = if packs { COMPRESSOR_MEMORY } else { 0 };
        let counted = bytes.len() + compressor;
        let (mut charge, shared_charge) = match memory {
            Some(memory) => (memory.into_response(counted)?, None),
            None if bytes.is_unique() => (self.budget.charge(payer, counted)?, None),
            None => {
                let (charge, shared) = self.budget.charge_shared(payer, counted, &bytes)?;
                (charge, Some(shared))
            }
        };
        let whole = FullBody { charge: charge.split(bytes.len()), bytes, shared_charge };
        Ok(if packs {
            self.compressed(whole, charge, payer.client)
        } else {
            Body::new(ChunkedBody::of(whole))
        })
    }

    /// Compresses the response as one gzip stream, some pieces at a time, as the client reads.
    fn compressed(&self, whole: FullBody, charge: Charge, client: IpAddr) -> Body {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let (queue, consumer) = (self.compression_queue.clone(), Consumer::from_address(client));
        let start =
            GzipStream { body: Some(whole), chunks: VecDeque::new(), encoder, _charge: charge };
        let gzip = stream::try_unfold(Some(start), move |packing| {
            let queue = queue.clone();
            async move {
                let Some(packing) = packing else { return Ok::<_, io::Error>(None) };
                let slot = queue.acquire(consumer).await;
                let slot = slot.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
                let step = run_low_priority(Priority::Answer, move || {
                    let _slot = slot;
                    packing.step()
                });
                Ok(Some(step.await.map_err(io::Error::other)??))
            }
        });
        Body::from_stream(gzip)
    }
}

/// Whether the response is large enough to be charged.
pub(super) fn is_large(response: &Response) -> bool {
    response.body().size_hint().exact().is_some_and(|size| size > MIN_COUNTED_SIZE as u64)
}

/// Returns the body as a single buffer. Every response of known size is a single buffer.
pub(super) fn collect_body(mut body: Body) -> Result<Bytes> {
    let size = body.size_hint().exact();
    let frame = body.frame().now_or_never().flatten();
    let bytes =
        frame.transpose().map_err(Error::internal)?.and_then(|frame| frame.into_data().ok());
    let is_whole = |bytes: &Bytes| Some(bytes.len() as u64) == size;
    bytes
        .filter(is_whole)
        .ok_or_else(|| Error::internal("the response body is not a single buffer"))
}

/// A charged response before it is cut into pieces.
struct FullBody {
    charge: Charge,
    /// The charge for the buffer, if other responses share it.
    shared_charge: Option<Arc<Charge>>,
    /// Dropped after the charges: a shared buffer is known by its address, which must not be reused while it is charged.
    bytes: Bytes,
}

/// A piece of a response, charged until the connection has written it.
struct Chunk<C> {
    _charge: C,
    /// Dropped after the charge, as in [`FullBody`].
    bytes: Bytes,
}

impl<C> AsRef<[u8]> for Chunk<C> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl FullBody {
    /// Cuts the response into pieces. The pieces of a shared buffer refer to it, and hold its whole charge until the
    /// last of them is sent. Another buffer is one piece if it has at most [`MAX_SINGLE_CHUNK`] bytes. Otherwise each
    /// piece is a copy with its part of the charge.
    fn split(self) -> VecDeque<Bytes> {
        let Self { bytes, mut charge, shared_charge } = self;
        if let Some(shared) = shared_charge {
            let counted = Arc::new((charge, shared));
            let piece =
                |part| Chunk { bytes: bytes.slice_ref(part), _charge: Arc::clone(&counted) };
            return bytes.chunks(CHUNK_SIZE).map(|part| Bytes::from_owner(piece(part))).collect();
        }
        let (mut rest, mut pieces) = (Vec::from(bytes), VecDeque::new());
        if rest.len() <= MAX_SINGLE_CHUNK {
            // The charge is for the bytes, not for the buffer's spare capacity.
            rest.shrink_to_fit();
            return [Bytes::from_owner(Chunk { bytes: rest.into(), _charge: charge })].into();
        }
        // Cutting from the end frees copied parts on the way, so the response never takes twice its memory.
        while !rest.is_empty() {
            let start = (rest.len() - 1) / CHUNK_SIZE * CHUNK_SIZE;
            let bytes = Bytes::copy_from_slice(rest.get(start..).unwrap_or_default());
            let piece = Chunk { _charge: charge.split(bytes.len()), bytes };
            pieces.push_front(Bytes::from_owner(piece));
            rest.truncate(start);
            if start.is_multiple_of(MAX_INLINE_SPLIT) {
                rest.shrink_to_fit();
            }
        }
        pieces
    }
}

/// A body that releases its memory as it is sent.
struct ChunkedBody {
    chunks: VecDeque<Bytes>,
    /// The background task that cuts the response, until it is done.
    splitting: Option<BoxFuture<'static, Result<VecDeque<Bytes>>>>,
    remaining: u64,
}

impl ChunkedBody {
    fn of(whole: FullBody) -> Self {
        let remaining = whole.bytes.len() as u64;
        if whole.shared_charge.is_some() || whole.bytes.len() <= MAX_INLINE_SPLIT {
            return Self { chunks: whole.split(), splitting: None, remaining };
        }
        let cutting = run_low_priority(Priority::Answer, move || whole.split()).boxed();
        Self { chunks: VecDeque::new(), splitting: Some(cutting), remaining }
    }
}

impl HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        if let Some(cutting) = &mut self.splitting {
            let cut = ready!(cutting.poll_unpin(cx));
            self.splitting = None;
            self.chunks = cut?;
        }
        let piece = self.chunks.pop_front();
        self.remaining -= piece.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

/// A response that is being compressed.
struct GzipStream {
    /// The response, until the first step.
    body: Option<FullBody>,
    chunks: VecDeque<Bytes>,
    encoder: GzEncoder<Vec<u8>>,
    _charge: Charge,
}

impl GzipStream {
    /// Compresses some pieces. Returns the output so far, and the remaining work if any.
    fn step(mut self) -> io::Result<(Bytes, Option<Self>)> {
        if let Some(whole) = self.body.take() {
            self.chunks = whole.split();
        }
        for piece in self.chunks.drain(..CHUNKS_PER_STEP.min(self.chunks.len())) {
            self.encoder.write_all(&piece)?;
        }
        if self.chunks.is_empty() {
            return Ok((self.encoder.finish()?.into(), None));
        }
        Ok((mem::take(self.encoder.get_mut()).into(), Some(self)))
    }
}

#[cfg(test)]
mod tests;
