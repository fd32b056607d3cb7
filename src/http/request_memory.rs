//! The memory of one request: of its body, and of the answer to the change that it asks for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::HttpBody;
use axum::extract::Request;

use crate::error::{Error, Result};

use super::budget::{Charge, UNCOUNTED};

/// What one request may take: an extension of the request, by which the gate tells it. Dropping the last clone gives
/// the memory back.
#[derive(Clone)]
pub(super) struct RequestMemory {
    /// The largest body, in bytes, where that is less than [`BodyLimits::max_bytes`](super::body::BodyLimits).
    max_body: usize,
    taken: Arc<Mutex<Taken>>,
}

struct Taken {
    charge: Charge,
    /// How many of its bytes are for the answer.
    answer: usize,
}

impl RequestMemory {
    /// Memory that is counted in `charge`, for a body of at most `max_body` bytes.
    pub(super) fn new(max_body: usize, charge: Charge) -> Self {
        Self { max_body, taken: Arc::new(Mutex::new(Taken { charge, answer: 0 })) }
    }

    /// Whether a request needs any: it has a body, or may change something.
    pub(super) fn is_needed(request: &Request) -> bool {
        !request.method().is_safe() || request.body().size_hint().upper() != Some(0)
    }

    /// The largest body, in bytes.
    pub(super) const fn max_body(&self) -> usize {
        self.max_body
    }

    /// Counts `bytes` for the body and what is made of it; little is not counted.
    ///
    /// # Errors
    /// 413 for more than one request may ever take; 503 when there is no room for it now.
    pub(super) fn count_body(&self, bytes: usize) -> Result<()> {
        let bytes = if bytes > UNCOUNTED { bytes } else { 0 };
        let mut taken = self.lock();
        let share = taken.charge.share();
        if bytes > share {
            return Err(Error::body_takes_too_much(share));
        }
        let bytes = bytes + taken.answer;
        Ok(taken.charge.resize(bytes)?)
    }

    /// What reserves bytes for the answer to a request with this memory.
    pub(super) fn reserving(
        memory: Option<Self>,
    ) -> Box<dyn Fn(usize) -> Result<()> + Send + Sync> {
        Box::new(move |bytes| memory.as_ref().map_or(Ok(()), |memory| memory.reserve(bytes)))
    }

    /// Reserves `bytes` for the answer, in place of what was reserved before.
    ///
    /// # Errors
    /// 503 when there is no room for it.
    fn reserve(&self, bytes: usize) -> Result<()> {
        let mut taken = self.lock();
        let body = taken.charge.bytes() - taken.answer;
        taken.charge.resize(body + bytes)?;
        taken.answer = bytes;
        Ok(())
    }

    /// What was reserved for the answer, if anything was. The rest is given back.
    pub(super) fn into_answer(self) -> Option<Arc<Charge>> {
        let mut taken = self.lock();
        let answer = std::mem::take(&mut taken.answer);
        let charge = taken.charge.split(answer);
        (answer > 0).then(|| Arc::new(charge))
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
