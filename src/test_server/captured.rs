//! Bodies of requests and responses, as far as they are kept.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flate2::read::GzDecoder;
use serde_json::Value;

/// The most bytes of a body that are kept.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// How compressed bodies begin.
const GZIP: &[u8] = b"\x1f\x8b";

/// The first bytes of a body. They count in the journal from their arrival until nothing shows them any more.
#[derive(Clone)]
pub(super) struct Captured(Arc<Bytes>);

struct Bytes {
    kept: Mutex<Vec<u8>>,
    /// The bytes of all bodies.
    total: Arc<AtomicUsize>,
}

impl Drop for Bytes {
    fn drop(&mut self) {
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.total.fetch_sub(kept.len(), Ordering::Relaxed);
    }
}

impl Captured {
    /// Begins without bytes. `total` counts those of all bodies.
    pub(super) fn new(total: &Arc<AtomicUsize>) -> Self {
        Self(Arc::new(Bytes { kept: Mutex::default(), total: Arc::clone(total) }))
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes, as long as there is room.
    pub(super) fn add(&self, bytes: &[u8]) {
        let mut kept = self.bytes();
        let room = MAX_BODY - kept.len();
        let added = bytes.get(..room).unwrap_or(bytes);
        kept.extend_from_slice(added);
        self.0.total.fetch_add(added.len(), Ordering::Relaxed);
    }

    /// Returns the body if it is JSON.
    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.bytes()).ok()
    }

    /// Returns whether there may be more than what is kept.
    pub(super) fn is_full(&self) -> bool {
        self.bytes().len() == MAX_BODY
    }

    /// Returns the body as it was sent.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Returns JSON as it is, and anything else as a text. Null if there is nothing.
    pub(super) fn shown(&self) -> Value {
        let mut kept = self.bytes().clone();
        if kept.is_empty() {
            return Value::Null;
        }
        if kept.starts_with(GZIP) {
            let mut plain = Vec::new();
            // A body that was cut ends with an error, after what there is of it.
            let _ = GzDecoder::new(kept.as_slice()).take(MAX_BODY as u64).read_to_end(&mut plain);
            kept = plain;
        }
        let json = serde_json::from_slice(&kept);
        json.unwrap_or_else(|_| String::from_utf8_lossy(&kept).into_owned().into())
    }
}
