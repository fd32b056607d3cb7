//! What commits change while a scrub reads the file in several snapshots.
//!
//! The scrub adds up the records of one table after the other. A record that changes after the scrub read it must be
//! corrected in the sums. So each write notes what it changes: which record adds how much to which count, and which
//! keys appear and disappear. The writer passes these notes on in the moment in which it publishes a commit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;

use super::journal::Journal;
use super::schema::Table;
use super::value_log::ValueLog;

/// How many changes are kept for a scrub that does not fetch them. It fetches them several times a second.
const MAX_CHANGES: usize = 100_000;

/// A change of a count, or of the number of keys in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommittedChange {
    /// The table of the record or key that changed.
    pub(super) table: Table,
    /// The key of the record, or the key that appeared or disappeared.
    pub(super) key: Vec<u8>,
    /// The key of the count that the record adds to; `None` if `key` appeared or disappeared.
    pub(super) count: Option<Vec<u8>>,
    /// How much was added.
    pub(super) delta: i64,
}

/// What receives each changed value of a batch.
enum ValueSink {
    /// The log of a copy under way.
    Log(Arc<ValueLog>),
    /// The rows for the origin.
    Journal(Journal),
}

/// The changes of a batch, noted only for a scrub, for a copy under way, and for an origin.
#[derive(Default)]
pub(super) struct NotedChanges {
    is_watched: bool,
    sinks: Vec<ValueSink>,
    /// The record whose counts the write changes.
    record: Option<(Table, Vec<u8>)>,
    /// Changes of counts by the current write.
    of_write: Vec<CommittedChange>,
    of_batch: Vec<CommittedChange>,
}

impl NotedChanges {
    /// Begins the notes of a batch for these logs, and for a scrub if there is one.
    pub(super) fn begin(is_watched: bool, logs: &[Arc<ValueLog>]) -> Self {
        let sinks = logs.iter().map(|log| ValueSink::Log(Arc::clone(log))).collect();
        Self { is_watched, sinks, ..Self::default() }
    }

    /// Collects the rows that change from now on.
    pub(super) fn begin_journal(&mut self) {
        self.sinks.push(ValueSink::Journal(Journal::default()));
    }

    /// Sets the record to which the following changes of counts belong.
    pub(super) fn begin_record(&mut self, table: Table, key: &[u8]) {
        if self.is_watched {
            self.record = Some((table, key.to_vec()));
        }
    }

    /// Notes that the record adds `delta` more to the count under `count`.
    pub(super) fn note_count(&mut self, count: &[u8], delta: i64) {
        if let Some((table, key)) = &self.record {
            let (table, key, count) = (*table, key.clone(), Some(count.to_vec()));
            self.of_write.push(CommittedChange { table, key, count, delta });
        }
    }

    /// Notes that `key` has this sealed value now; `None` if it was removed. `was`: whether it had one before.
    pub(super) fn note_value(
        &mut self,
        table: Table,
        key: &[u8],
        was: bool,
        sealed: Option<&[u8]>,
    ) {
        for sink in &mut self.sinks {
            match sink {
                ValueSink::Log(log) => log.add(table, key, sealed),
                ValueSink::Journal(journal) => journal.note(table, key, sealed),
            }
        }
        if self.is_watched && was != sealed.is_some() {
            let (key, delta) = (key.to_vec(), if was { -1 } else { 1 });
            self.of_batch.push(CommittedChange { table, key, count: None, delta });
        }
    }

    /// Keeps the changes of counts of the current write.
    pub(super) fn keep(&mut self) {
        self.of_batch.append(&mut self.of_write);
    }

    /// Forgets the changes of counts of the current write.
    pub(super) fn undo(&mut self) {
        self.of_write.clear();
    }

    /// Returns the changes of the batch for a scrub, and its journal if there is one.
    pub(super) fn into_changes(self) -> (Vec<CommittedChange>, Option<Journal>) {
        let journal = self.sinks.into_iter().find_map(|sink| match sink {
            ValueSink::Journal(journal) => Some(journal),
            ValueSink::Log(_) => None,
        });
        (self.of_batch, journal)
    }
}

/// Passes the changes of commits from the writer to one scrub.
#[derive(Default)]
pub(super) struct ChangeFeed {
    /// Set by the writer thread only, so it does not change during a batch. Cleared by the end of the scrub.
    is_watched: AtomicBool,
    pending: Mutex<PendingChanges>,
    /// Held by a scrub: there is one at a time.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct PendingChanges {
    changes: Vec<CommittedChange>,
    /// The table whose keys the scrub counts.
    keys_of: Option<Table>,
    /// Whether changes are missing, because there were too many.
    is_overfull: bool,
}

impl ChangeFeed {
    /// Whether a scrub needs the changes of the next batch.
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Acquire)
    }

    /// Publishes a commit and its changes in one step.
    pub(super) fn publish(
        &self,
        mut changes: Vec<CommittedChange>,
        publish: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if changes.is_empty() {
            return publish();
        }
        let mut pending = self.pending();
        publish()?;
        if !self.is_watched() || pending.is_overfull {
            return Ok(());
        }
        changes.retain(|change| change.count.is_some() || pending.keys_of == Some(change.table));
        pending.is_overfull = pending.changes.len() + changes.len() > MAX_CHANGES;
        if pending.is_overfull {
            pending.changes = Vec::new();
        } else {
            pending.changes.append(&mut changes);
        }
        Ok(())
    }

    /// Makes a scrub begin again: a commit of another node does not say what it changed.
    pub(super) fn lose_changes(&self) {
        if self.is_watched() {
            let mut pending = self.pending();
            pending.is_overfull = true;
            pending.changes = Vec::new();
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives the changes of all commits from its creation until it is dropped.
pub(super) struct ChangeWatch(Arc<ChangeFeed>);

impl ChangeWatch {
    /// Begins to receive changes. Only one watch may exist, and only the writer thread may create it: a batch notes
    /// either all of its changes or none.
    pub(super) fn begin(feed: Arc<ChangeFeed>) -> Self {
        *feed.pending() = PendingChanges::default();
        feed.is_watched.store(true, Ordering::Release);
        Self(feed)
    }

    /// Returns the published state that `read` returns, and the changes since the previous call, without those of keys
    /// of other tables than the one that the previous call named. `None` instead of the changes: some are missing.
    pub(super) fn next_state<T>(
        &self,
        keys_of: Table,
        read: impl FnOnce() -> T,
    ) -> (T, Option<Vec<CommittedChange>>) {
        let mut pending = self.0.pending();
        pending.keys_of = Some(keys_of);
        let changes = std::mem::take(&mut pending.changes);
        (read(), (!pending.is_overfull).then_some(changes))
    }
}

impl Drop for ChangeWatch {
    fn drop(&mut self) {
        self.0.is_watched.store(false, Ordering::Release);
        *self.0.pending() = PendingChanges::default();
    }
}
