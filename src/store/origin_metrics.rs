//! Numbers about the work with an origin. The store only counts; its callers publish the numbers.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Store;
use super::position::Position;

/// The time for which an answer of the origin shows that it is up. Without readers, a store asks once a second.
const UP_FOR: Duration = Duration::from_secs(5);

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
pub(super) struct OriginStats {
    listener: OnceLock<Listener>,
    overtaken: AtomicU64,
    unknown: AtomicU64,
    copies_made: AtomicU64,
    behind: AtomicU64,
}

impl OriginStats {
    /// Records a call that began at `begun` and was answered now.
    pub(super) fn note_call(&self, call: OriginCall, begun: Instant) {
        if let Some(listener) = self.listener.get() {
            listener(call, begun.elapsed());
        }
    }

    /// Records a batch that must run again because another node was first.
    pub(super) fn note_overtaken(&self) {
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
    pub(super) fn note_head(&self, head: Position, known: Position) {
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

impl Store {
    /// Calls `listener` after each call that the origin answered, from now on. It runs on threads of the store, so it must be
    /// quick. The store has one listener: only the first call has an effect. A data file has no origin.
    pub(crate) fn on_origin_call(
        &self,
        listener: impl Fn(OriginCall, Duration) + Send + Sync + 'static,
    ) {
        if let Some(source) = &self.source {
            let _kept = source.stats.listener.set(Box::new(listener));
        }
    }

    /// Returns numbers about the work with the origin, or `None` for a data file.
    pub(crate) fn origin_metrics(&self) -> Option<OriginMetrics> {
        let (source, state) = (self.source.as_ref()?, self.shared.origin.as_ref()?);
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let stats = &source.stats;
        Some(OriginMetrics {
            is_up: !state.is_away() && state.asked_at().is_some_and(|at| at.elapsed() < UP_FOR),
            overtaken: read(&stats.overtaken),
            unknown: read(&stats.unknown),
            copies_made: read(&stats.copies_made),
            behind: read(&stats.behind),
        })
    }
}
