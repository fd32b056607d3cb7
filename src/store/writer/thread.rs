//! The writer thread: group commit, and recovery after a failure of the file.
//!
//! Writes are queued during the sync of a commit. The writer then runs all queued writes in one redb transaction, syncs
//! once, and only then returns the results. So a 2xx means that the change is on disk, and N writes share one sync.
//! Consumers take turns, and a batch of several consumers ends when one of them has used its share of time.

mod files;
mod origin;

pub(in crate::store) use origin::OriginWriter;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use redb::{Database, WriteTransaction};
use tokio::runtime::Handle;

use crate::base::error::{Error, Result};
use crate::base::tasks::spawn_on;
use crate::store::changes::batch_diff::BatchDiff;
use crate::store::disk::engine::{
    begin, begin_volatile, close, closed, require_usable, storage_error, unavailable,
};
use crate::store::disk::file::FileLock;
use crate::store::disk::file_system::FsHandle;
use crate::store::reads::snapshot::{OpenedFile, Snapshot};
use crate::store::write::WriteTx;

use super::file_place::DISPLACED;
use super::metrics::Commit;
use super::queue::{Receiver, Sender};
use super::task::{NextWrite, QueuedWrite, Task};
use super::{CloseOnDrop, Shared};

/// The maximum number of writes in one batch.
const BATCH_WRITES: usize = 512;
/// The maximum time for which one batch accepts writes.
const BATCH_TIME: Duration = Duration::from_millis(10);
/// The maximum time for which the writes of one consumer run in a batch with writes of others.
const CONSUMER_TIME: Duration = Duration::from_millis(2);
/// How long a batch waits for further writes in all, while it has fewer writes than [`Writer::expected`]. Clients that get a
/// response mostly send their next request at once, and one sync for all of them costs less than two.
const GATHER_TIME: Duration = Duration::from_millis(1);

/// What the writes of a batch did.
#[derive(Clone, Copy, Default)]
struct BatchRun {
    /// Whether any of them changed something.
    changed: bool,
    /// Whether any of them succeeded and changed nothing, so that its response shows earlier changes only.
    repeats: bool,
}

impl BatchRun {
    /// Notes a write that succeeded.
    fn note(&mut self, tx: &WriteTx<'_>) {
        let changes = tx.wrote_anything();
        self.repeats |= !changes;
        self.changed |= changes;
    }
}

/// The state of the writer thread.
pub struct Writer {
    pub fs: FsHandle,
    pub path: PathBuf,
    pub cache: usize,
    pub lock: FileLock,
    pub queue: Receiver,
    /// The sending end of `queue`. Snapshots use it to report a failed read.
    pub sender: Weak<Sender>,
    pub shared: Arc<Shared>,
    /// The number of writes in the last batch, plus those that were queued when it ended.
    pub expected: usize,
    /// Kept open by its snapshots after another file replaced it.
    pub file: Arc<OpenedFile>,
    /// The runtime that sends the results of several writes: it wakes its own tasks cheaper than this thread does.
    pub runtime: Option<Handle>,
    /// The shared database whose copy the file is; `None` for a data file.
    pub origin: Option<OriginWriter>,
}

impl Writer {
    /// Runs tasks until [`Task::Close`] or until the queue is closed and empty, then closes the file.
    pub fn run(mut self, database: Database) {
        let _closing = CloseOnDrop(Arc::clone(&self.shared));
        let left = self.serve(database);
        self.shared.close();
        let synced = left.as_ref().map(|database| self.sync_copy(database));
        if let Some(Err(cause)) = synced {
            tracing::warn!(%cause, "the copy was not synced; it catches up when it is opened");
        }
        if let Some(Err(cause)) = left.map(close) {
            tracing::error!(%cause, "the data file was not closed cleanly");
        }
        drop(self.lock);
    }

    fn serve(&mut self, mut database: Database) -> Option<Database> {
        while let Some(task) = self.queue.recv() {
            let task = match task {
                Task::ExclusiveFile(work) => {
                    database = self.with_exclusive_file(database, work)?;
                    continue;
                }
                Task::Replace(prepare) => {
                    database = self.replace(database, prepare)?;
                    continue;
                }
                Task::Close => break,
                task => task,
            };
            let wrote = matches!(task, Task::Write(..));
            // A panic here comes from redb. Its state in memory is unreliable afterwards.
            let is_displaced = self.origin.is_none()
                && matches!(task, Task::Write(_) | Task::EmptyCommit(_))
                && self.shared.place.is_displaced(&self.fs, &self.path);
            let outcome = catch_unwind(AssertUnwindSafe(|| match task {
                Task::Write(refused) if is_displaced => {
                    refused.write.answer(Err(unavailable(DISPLACED)));
                    Ok(())
                }
                // Without an answer, the probe fails.
                Task::EmptyCommit(_) if is_displaced => Ok(()),
                Task::Write(first) => self.batch(&database, first),
                Task::TakeRows(new) => self.take_rows(&database, new),
                Task::Sync => self.sync_copy(&database),
                Task::Quiesce(work) => {
                    self.sync_copy(&database)?;
                    self.shared.stats.run_busy(work);
                    Ok(())
                }
                Task::Inspect(inspect) => inspect(&database),
                Task::EmptyCommit(reply) => {
                    self.commit(&database, begin(&database)?, 0)?;
                    let _ = reply.send(());
                    Ok(())
                }
                // Handled above.
                Task::Close | Task::ExclusiveFile(_) | Task::Replace(_) => Ok(()),
            }));
            let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("redb panicked")));
            if let Err(cause) = outcome {
                database = self.reopen(database, wrote, &cause)?;
            }
        }
        Some(database)
    }

    /// Runs `first` and the queued writes after it in one transaction.
    fn batch(&mut self, database: &Database, first: NextWrite) -> Result<()> {
        let mut ran = Vec::new();
        let committed = match self.origin.as_ref().map(|origin| Arc::clone(&origin.source)) {
            None => self.transact(database, first, &mut ran).map(|()| None),
            Some(source) => self.transact_with_origin(database, &source, first, &mut ran),
        };
        let answer = match &committed {
            Ok(Some(refused)) => Err(refused.clone()),
            Ok(None) => self.shared.snapshot.load_full().ok_or_else(closed),
            Err(cause) => {
                // Before the results are sent: a caller that got its error finds the store closed.
                self.shared.close();
                Err(unavailable(cause))
            }
        };
        self.expected = ran.len() + self.queue.due();
        let is_batch = ran.len() > 1;
        let send = move || ran.into_iter().for_each(|write| write.answer(answer.clone()));
        match &self.runtime {
            Some(runtime) if is_batch => spawn_on(runtime, async move { send() }),
            _ => send(),
        }
        committed.map(drop)
    }

    /// Commits `transaction` and publishes a new snapshot, even if nothing changed: an older snapshot would
    /// keep the pages that each commit frees.
    fn commit(
        &self,
        database: &Database,
        transaction: WriteTransaction,
        writes: usize,
    ) -> Result<()> {
        let begun = Instant::now();
        transaction.commit().map_err(storage_error)?;
        self.publish(database)?;
        self.shared.stats.note_commit(Commit { writes, took: begun.elapsed() });
        Ok(())
    }

    fn transact(
        &self,
        database: &Database,
        first: NextWrite,
        ran: &mut Vec<QueuedWrite>,
    ) -> Result<()> {
        let is_kept = self.fs.file_system().outlives_process();
        let transaction = if is_kept { begin(database)? } else { begin_volatile(database)? };
        let mut tx = self.begin_batch(&transaction);
        let done = self.run_batch(&mut tx, first, ran)?;
        if !done.changed {
            drop(tx);
            return transaction.abort().map_err(storage_error);
        }
        let diff = tx.finish()?;
        if diff.changes_access() {
            self.shared.access_version.fetch_add(1, Ordering::Relaxed);
        }
        self.commit(database, transaction, ran.len())?;
        diff.end_commit();
        Ok(())
    }

    fn begin_batch<'t>(&self, transaction: &'t WriteTransaction) -> WriteTx<'t> {
        let diff = BatchDiff::begin(&self.shared.value_logs);
        let mut tx = WriteTx::with(transaction, diff);
        tx.access_version = Some(self.shared.access_version.load(Ordering::Relaxed));
        tx
    }

    /// Runs `first` and the queued writes after it.
    fn run_batch(
        &self,
        tx: &mut WriteTx<'_>,
        first: NextWrite,
        ran: &mut Vec<QueuedWrite>,
    ) -> Result<BatchRun> {
        let begun = Instant::now();
        let (mut done, mut patience) = (BatchRun::default(), GATHER_TIME);
        let (mut times, mut next) = (HashMap::<_, Duration>::new(), Some(first));
        while let Some(NextWrite { consumer, mut write }) = next.take() {
            let mut is_last = false;
            if !write.is_abandoned() {
                let started = Instant::now();
                tx.begin();
                let stays = write.run(tx);
                ran.push(write);
                if tx.is_large()
                    && let Some(runtime) = &self.runtime
                    && let Some(cooldown) = self.queue.begin_cooldown(tx.records_changed())
                {
                    spawn_on(runtime, cooldown.wait());
                }
                if stays && !tx.is_discarded {
                    done.note(tx);
                    // A commit of an origin has a largest size.
                    let is_full = tx.pending_bytes() >= origin::BATCH_BYTES;
                    is_last = tx.ends_batch || (is_full && self.origin.is_some());
                    tx.savepoint()?;
                } else {
                    tx.rollback();
                }
                *times.entry(consumer).or_default() += started.elapsed();
                // A consumer has used its share of a batch that has writes of others too.
                is_last |= times.len() > 1 && times.values().any(|used| *used >= CONSUMER_TIME);
            }
            if !is_last && ran.len() < BATCH_WRITES && begun.elapsed() < BATCH_TIME {
                // Half of the missing writes: this thread runs them while the others arrive, and is woken only a
                // few times.
                let enough = self.expected.saturating_sub(ran.len()).div_ceil(2);
                next = self.queue.next_write(enough, &mut patience);
            }
        }
        Ok(done)
    }

    /// Publishes the committed state to readers.
    pub fn publish(&self, database: &Database) -> Result<()> {
        let mut snapshot = snapshot(database, &self.sender)?.of_file(Arc::clone(&self.file));
        snapshot.generation = self.shared.generation.load(Ordering::Relaxed);
        snapshot.access_version = self.shared.access_version.load(Ordering::Relaxed);
        snapshot.position = self.position();
        self.shared.snapshot.store(Some(Arc::new(snapshot)));
        Ok(())
    }
}

/// Returns a snapshot of `database`. If a read of the snapshot fails, the writer checks whether the file is still usable. If
/// the queue is full, the writer will detect the failure by itself.
pub fn snapshot(database: &Database, writer: &Weak<Sender>) -> Result<Snapshot> {
    let writer = Weak::clone(writer);
    let alarm = move || {
        if let Some(writer) = writer.upgrade() {
            let _ = writer.send(Task::Inspect(Box::new(require_usable)));
        }
    };
    Snapshot::new(database, Box::new(alarm))
}
