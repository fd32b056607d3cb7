//! State that the writer thread shares with the rest of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use crate::store::changes::value_log::ValueLogs;
use crate::store::origin::state::OriginState;
use crate::store::reads::snapshot::Snapshot;

use super::file_place::FilePlace;
use super::metrics::WriterStats;
use super::watchers::Watchers;

/// State that the writer thread shares with the rest of the store.
pub(in crate::store) struct Shared {
    /// The state after the last commit, or `None` while the file is closed.
    pub(in crate::store) snapshot: ArcSwapOption<Snapshot>,
    /// Whether the file is open and its last commit succeeded.
    pub(in crate::store) ready: AtomicBool,
    /// The file that was opened, to notice that its name is gone or names another file.
    pub(in crate::store) place: FilePlace,
    /// How often the file was closed. [`Snapshot::generation`] returns this number.
    pub(in crate::store) generation: AtomicU64,
    /// The version of the access tables in the file ([`AccessVersion`](crate::store::write::access::AccessVersion)).
    pub(in crate::store) access_version: AtomicU64,
    /// Statistics for metrics and readiness.
    pub(in crate::store) stats: WriterStats,
    /// Receives the values that commits change, for copies under way.
    pub(in crate::store) value_logs: ValueLogs,
    /// What the threads of a store with an origin share; `None` for a data file.
    pub(in crate::store) origin: Option<Arc<OriginState>>,
    /// Called before a state is shown. Only a store with an origin calls them.
    pub(in crate::store) watchers: Watchers,
}

impl Shared {
    /// The state of a file that was opened, with its first snapshot.
    pub(in crate::store) fn new(first: Snapshot, origin: Option<Arc<OriginState>>) -> Self {
        Self {
            snapshot: ArcSwapOption::from_pointee(first),
            ready: AtomicBool::new(true),
            place: FilePlace::default(),
            generation: AtomicU64::new(0),
            access_version: AtomicU64::new(0),
            stats: WriterStats::default(),
            value_logs: ValueLogs::default(),
            origin,
            watchers: Watchers::default(),
        }
    }

    /// Stops all reads and writes.
    pub(in crate::store) fn close(&self) {
        self.ready.store(false, Ordering::Release);
        self.snapshot.store(None);
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.stats.note_close();
    }
}

/// Closes the store when the writer thread ends, also by a panic.
pub(in crate::store) struct CloseOnDrop(pub(in crate::store) Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
        if let Some(origin) = &self.0.origin {
            origin.close();
        }
    }
}
