//! Numbers about the work with an origin. The store only counts; its callers publish the numbers.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::store::values::position::Position;

/// A call that the origin answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginCall {
    /// A question about what is new, which the store asked for this many readers at once. A store asks for none when it is idle.
    Ask {
        /// How many readers waited for the answer.
        readers: usize,
    },
    /// An attempt to commit a batch, taken or not.
    Commit,
    /// A wait for the right to be next.
    Turn,
}

/// Called on threads of the store after each answered call with the time that it took, so it must be quick.
type Listener = Box<dyn Fn(OriginCall, Duration) + Send + Sync>;

/// What the threads of a store count.
#[derive(Default)]
pub(in crate::store) struct OriginStats {
    listener: OnceLock<Listener>,
    overtaken: AtomicU64,
    unknown: AtomicU64,
    copies_made: AtomicU64,
    behind: AtomicU64,
}

impl OriginStats {
    /// Calls `listener` after each answered call from now on. Only the first listener is called.
    pub(in crate::store) fn listen(
        &self,
        listener: impl Fn(OriginCall, Duration) + Send + Sync + 'static,
    ) {
        let _kept = self.listener.set(Box::new(listener));
    }

    /// Returns the numbers, with whether the origin answered lately.
    pub(in crate::store) fn metrics(&self, is_up: bool) -> OriginMetrics {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        OriginMetrics {
            is_up,
            overtaken: read(&self.overtaken),
            unknown: read(&self.unknown),
            copies_made: read(&self.copies_made),
            behind: read(&self.behind),
        }
    }

    /// Records a call that began at `begun` and was answered now.
    pub(in crate::store) fn note_call(&self, call: OriginCall, begun: Instant) {
        if let Some(listener) = self.listener.get() {
            listener(call, begun.elapsed());
        }
    }

    /// Records a batch that must run again because another node was first.
    pub(in crate::store) fn note_overtaken(&self) {
        self.overtaken.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a commit that got no answer.
    pub(super) fn note_unknown(&self) {
        self.unknown.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a copy that was made from all rows.
    pub(super) fn note_copy_made(&self) {
        self.copies_made.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the last commit of the origin, and that of the copy when it asked.
    pub(in crate::store) fn note_head(&self, head: Position, known: Position) {
        self.behind.store(head.seq.saturating_sub(known.seq), Ordering::Relaxed);
    }
}

/// Numbers about the work with an origin since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OriginMetrics {
    /// Whether the origin answered lately.
    pub is_up: bool,
    /// How many batches ran again because another node was first.
    pub overtaken: u64,
    /// How many commits got no answer, so that the store had to ask whether they were done.
    pub unknown: u64,
    /// How often the copy was made from all rows.
    pub copies_made: u64,
    /// How many commits the copy lacked at the last question.
    pub behind: u64,
}
