//! The memory of one request: its body, and the response to its write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::HttpBody;
use axum::extract::Request;

use crate::error::{Error, Result};
use crate::memory_budget::{Charge, MIN_COUNTED_SIZE};

/// The memory that one request may take. The route's guard passes it on as a request extension. Dropping the last
/// clone releases the memory.
#[derive(Clone)]
pub(super) struct RequestMemory {
    /// The largest body, in bytes, if lower than [`BodyLimits::max_bytes`](super::body::BodyLimits).
    max_body: usize,
    reserved: Arc<Mutex<Reserved>>,
}

struct Reserved {
    charge: Charge,
    /// The bytes of the charge that are for the response.
    response_bytes: usize,
}

impl RequestMemory {
    /// Creates the memory of a request from `charge`, with a body of at most `max_body` bytes.
    pub(super) fn new(max_body: usize, charge: Charge) -> Self {
        Self { max_body, reserved: Arc::new(Mutex::new(Reserved { charge, response_bytes: 0 })) }
    }

    /// Whether the request needs memory: it has a body or may write.
    pub(super) fn is_needed(request: &Request) -> bool {
        !request.method().is_safe() || request.body().size_hint().upper() != Some(0)
    }

    /// Returns the largest body, in bytes.
    pub(super) const fn max_body(&self) -> usize {
        self.max_body
    }

    /// Charges `bytes` for the body and its parsed form. Small bodies are not charged.
    ///
    /// # Errors
    /// 413 if one request may never take that much, 503 if there is no room now.
    pub(super) fn count_body(&self, bytes: usize) -> Result<()> {
        let bytes = if bytes > MIN_COUNTED_SIZE { bytes } else { 0 };
        let mut taken = self.lock();
        let share = taken.charge.smallest_limit();
        if bytes > share {
            return Err(Error::body_needs_too_much_memory(share));
        }
        let bytes = bytes + taken.response_bytes;
        Ok(taken.charge.resize(bytes)?)
    }

    /// Returns a function that reserves memory for the response.
    pub(super) fn reserve_fn(
        memory: Option<Self>,
    ) -> Box<dyn Fn(usize) -> Result<()> + Send + Sync> {
        Box::new(move |bytes| memory.as_ref().map_or(Ok(()), |memory| memory.reserve(bytes)))
    }

    /// Reserves `bytes` for the response, replacing an earlier reservation.
    ///
    /// # Errors
    /// 503 if there is no room.
    fn reserve(&self, bytes: usize) -> Result<()> {
        let mut taken = self.lock();
        let body = taken.charge.bytes() - taken.response_bytes;
        taken.charge.resize(body + bytes)?;
        taken.response_bytes = bytes;
        Ok(())
    }

    /// Releases the body's memory. Returns the charge for the response, if one was reserved.
    pub(super) fn into_charge(self) -> Option<Arc<Charge>> {
        let mut taken = self.lock();
        let response = std::mem::take(&mut taken.response_bytes);
        let charge = taken.charge.split(response);
        (response > 0).then(|| Arc::new(charge))
    }

    fn lock(&self) -> MutexGuard<'_, Reserved> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
