//! The writer thread: group commit, and recovery after a failure of the file.
//!
//! Writes are queued during the sync of a commit. The writer then runs all queued writes in one redb transaction, syncs
//! once, and only then returns the results. So a 2xx means that the change is on disk, and N writes share one sync.
//! Consumers take turns, one write at a time, and share the time of a batch.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use redb::{Database, WriteTransaction};
use tokio::runtime::Handle;

use crate::error::{Error, Result};
use crate::fair_queue::Consumer;

use super::cooldowns::LARGE_WRITE;
use super::engine::{RETRY_AFTER, begin, begin_read, require_usable, storage_error};
use super::file::{self, FileLock};
use super::file_system::FsHandle;
use super::metrics::{Commit, WriterStats};
use super::queue::{BatchNext, Receiver, Sender};
use super::queued::QueuedWrite;
use super::rewrite;
use super::snapshot::Snapshot;
use super::task::{NextWrite, Task};
use super::write::WriteTx;

/// The maximum number of writes in one batch.
const BATCH_WRITES: usize = 512;
/// The maximum time for which one batch accepts writes.
const BATCH_TIME: Duration = Duration::from_millis(10);
/// The maximum time that the writes of one consumer run in a batch with writes of other consumers.
const CONSUMER_TIME: Duration = Duration::from_millis(2);
/// How often a batch waits for another write, while it has fewer writes than [`Writer::expected`]. Clients that get a
/// response mostly send their next request at once, and one sync for all of them costs less than two.
const GATHER_STEPS: usize = 20;
/// The duration of each such wait.
const GATHER_STEP: Duration = Duration::from_micros(50);
/// The first delay after a failure of the file. While the file cannot be opened, the delay doubles with each attempt, up
/// to [`MAX_REOPEN_DELAY`].
const MIN_REOPEN_DELAY: Duration = Duration::from_millis(50);
/// The maximum delay between two attempts to open the file again.
const MAX_REOPEN_DELAY: Duration = Duration::from_secs(5);

/// State that the writer thread shares with the rest of the store.
pub(super) struct Shared {
    /// The state after the last commit, or `None` while the file is closed.
    pub(super) snapshot: ArcSwapOption<Snapshot>,
    /// Whether the file is open and its last commit succeeded.
    pub(super) ready: AtomicBool,
    /// How often the file was closed. [`Snapshot::generation`] returns this number.
    pub(super) generation: AtomicU64,
    /// Statistics for metrics and readiness.
    pub(super) stats: WriterStats,
}

impl Shared {
    /// Stops all reads and writes.
    fn close(&self) {
        self.ready.store(false, Ordering::Release);
        self.snapshot.store(None);
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.stats.note_close();
    }
}

/// Closes the store when the writer thread ends, also by a panic.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The state of the writer thread.
pub(super) struct Writer {
    pub(super) fs: FsHandle,
    pub(super) path: PathBuf,
    pub(super) cache: usize,
    pub(super) lock: FileLock,
    pub(super) queue: Receiver,
    /// The sending end of `queue`. Snapshots use it to report a failed read.
    pub(super) sender: Weak<Sender>,
    pub(super) shared: Arc<Shared>,
    /// The number of writes in the last batch, plus those that were queued when it ended.
    pub(super) expected: usize,
    /// The runtime that sends the results: it wakes its own tasks cheaper than this thread does.
    pub(super) runtime: Option<Handle>,
}

impl Writer {
    /// Runs tasks until [`Task::Close`] or until the queue is closed and empty, then closes the file.
    pub(super) fn run(mut self, database: Database) {
        let _closing = CloseOnDrop(Arc::clone(&self.shared));
        let left = self.serve(database);
        self.shared.close();
        drop(left);
        drop(self.lock);
    }

    fn serve(&mut self, mut database: Database) -> Option<Database> {
        while let Some(task) = self.queue.recv() {
            let task = match task {
                Task::ExclusiveFile(work) => {
                    database = self.with_exclusive_file(database, work)?;
                    continue;
                }
                task => task,
            };
            let wrote = matches!(task, Task::Write(..));
            // A panic here comes from redb. Its state in memory is unreliable afterwards.
            let outcome = catch_unwind(AssertUnwindSafe(|| match task {
                Task::Write(first) => self.batch(&database, first).map(|()| true),
                Task::Quiesce(work) => {
                    self.shared.stats.run_busy(work);
                    Ok(true)
                }
                Task::Probe => require_usable(&database).map(|()| true),
                Task::Inspect(inspect) => {
                    inspect(&database);
                    Ok(true)
                }
                Task::EmptyCommit(reply) => {
                    self.commit(&database, begin(&database)?, 0)?;
                    let _ = reply.send(());
                    Ok(true)
                }
                Task::Close | Task::ExclusiveFile(_) => Ok(false),
            }));
            match outcome.unwrap_or_else(|_| Err(Error::internal("redb panicked"))) {
                Ok(true) => {}
                Ok(false) => break,
                Err(cause) => database = self.reopen(database, wrote, &cause)?,
            }
        }
        Some(database)
    }

    /// Runs `first` and the queued writes after it in one transaction.
    fn batch(&mut self, database: &Database, first: NextWrite) -> Result<()> {
        let mut ran = Vec::new();
        let committed = self.transact(database, first, &mut ran);
        let closed = || Error::unavailable(RETRY_AFTER, "the data file is closed");
        let answer = match &committed {
            Ok(()) => self.shared.snapshot.load_full().ok_or_else(closed),
            Err(cause) => {
                // Before the results are sent: a caller that got its error finds the store closed.
                self.shared.close();
                Err(Error::unavailable(RETRY_AFTER, cause))
            }
        };
        self.expected = ran.len() + self.queue.due();
        let send = move || ran.into_iter().for_each(|write| write.answer(answer.clone()));
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(async move { send() })),
            None => send(),
        }
        committed
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
        &mut self,
        database: &Database,
        first: NextWrite,
        ran: &mut Vec<Box<dyn QueuedWrite>>,
    ) -> Result<()> {
        let begun = Instant::now();
        let transaction = begin(database)?;
        let mut tx = WriteTx::new(&transaction);
        let (mut changed, mut waits) = (false, GATHER_STEPS);
        let (mut shares, mut next) = (ConsumerTimes::default(), Some(first));
        while let Some(NextWrite { consumer, mut write, is_cooling_down }) = next.take() {
            let mut is_last = false;
            if !write.is_abandoned() {
                let started = Instant::now();
                tx.begin(if is_cooling_down { LARGE_WRITE } else { usize::MAX });
                let stays = write.run(&mut tx) && !tx.is_too_large();
                if tx.is_too_large() {
                    self.queue.put_back(consumer, write);
                } else {
                    ran.push(write);
                }
                if stays {
                    self.queue.end_write(consumer, tx.records_changed());
                }
                if stays && !tx.is_discarded() {
                    changed |= tx.wrote_anything();
                    is_last = tx.ends_batch();
                    tx.savepoint()?;
                } else {
                    tx.rollback()?;
                }
                shares.add(consumer, started.elapsed());
            }
            if !is_last && ran.len() < BATCH_WRITES && begun.elapsed() < BATCH_TIME {
                next = self.next_of_batch(ran.len(), &shares, &mut waits);
            }
        }
        if !changed {
            drop(tx);
            return transaction.abort().map_err(storage_error);
        }
        tx.finish()?;
        self.commit(database, transaction, ran.len())
    }

    /// Returns the next write of the batch. Waits a little for it if the batch has fewer writes than expected.
    fn next_of_batch(
        &mut self,
        ran: usize,
        shares: &ConsumerTimes,
        waits: &mut usize,
    ) -> Option<NextWrite> {
        loop {
            match self.queue.next_of_batch(|consumer| shares.may_add(consumer)) {
                BatchNext::Write(turn) => return Some(turn),
                BatchNext::Empty if ran < self.expected && *waits > 0 => {}
                BatchNext::Empty | BatchNext::End => return None,
            }
            *waits -= 1;
            std::thread::sleep(GATHER_STEP);
        }
    }

    /// Publishes the committed state to readers.
    pub(super) fn publish(&self, database: &Database) -> Result<()> {
        let opening = self.shared.generation.load(Ordering::Relaxed);
        let snapshot = snapshot(database, &self.sender)?.with_generation(opening);
        self.shared.snapshot.store(Some(Arc::new(snapshot)));
        Ok(())
    }

    /// Passes the database to `work`, then opens the file again. Returns `None` if the store is closed before that.
    fn with_exclusive_file(
        &mut self,
        database: Database,
        work: Box<dyn FnOnce(Database) -> Box<dyn FnOnce() + Send> + Send>,
    ) -> Option<Database> {
        // If `work` panics, its reply channel is dropped, and the caller gets 503.
        let tell = self.shared.stats.run_busy(|| {
            self.shared.close();
            catch_unwind(AssertUnwindSafe(|| work(database))).ok()
        });
        let opened = self.open_again(Duration::ZERO);
        if let Some(tell) = tell {
            tell();
        }
        opened
    }

    /// Closes the file and opens it again, with as many attempts as needed. Reads and writes fail until then: after an
    /// I/O error the handle refuses all writes, and its state in memory is unreliable. After a failed write the file is
    /// opened at once, so that reads continue; writes fail for [`MIN_REOPEN_DELAY`] more. Returns `None` if the store is
    /// closed before the file is open again.
    fn reopen(&mut self, database: Database, wrote: bool, cause: &Error) -> Option<Database> {
        tracing::error!(%cause, "the data file failed; opening it again");
        self.shared.close();
        drop(database);
        let (first, rest) = if wrote {
            (Duration::ZERO, MIN_REOPEN_DELAY)
        } else {
            (MIN_REOPEN_DELAY, Duration::ZERO)
        };
        if self.refuse_for(first) == StoreClosed::Yes {
            return None;
        }
        self.open_again(rest)
    }

    /// Opens the file, with as many attempts as needed. Reads continue at once, writes after `rest`.
    fn open_again(&mut self, rest: Duration) -> Option<Database> {
        let mut wait = MIN_REOPEN_DELAY;
        loop {
            match self.try_open() {
                Ok(database) => {
                    tracing::info!("the data file is open again");
                    if self.refuse_for(rest) == StoreClosed::Yes {
                        return None;
                    }
                    self.shared.ready.store(true, Ordering::Release);
                    return Some(database);
                }
                Err(cause) => tracing::error!(%cause, "the data file cannot be opened yet"),
            }
            wait = (wait * 2).min(MAX_REOPEN_DELAY);
            if self.refuse_for(wait) == StoreClosed::Yes {
                return None;
            }
        }
    }

    fn try_open(&self) -> Result<Database> {
        if self.fs.has_failed_sync() {
            self.shared.stats.run_busy(|| rewrite::rewrite(&self.fs, &self.path))?;
        }
        let database = file::open(&self.fs, &self.path, self.cache).map_err(Error::internal)?;
        self.publish(&database)?;
        self.fs.clear_failed_sync();
        Ok(database)
    }

    /// Refuses all tasks for the duration `wait`.
    fn refuse_for(&mut self, wait: Duration) -> StoreClosed {
        let until = Instant::now() + wait;
        loop {
            if let Some(task) = self.queue.try_recv() {
                if refuse(task) == StoreClosed::Yes {
                    return StoreClosed::Yes;
                }
                continue;
            }
            if self.queue.is_closed() {
                return StoreClosed::Yes;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return StoreClosed::No;
            }
            std::thread::sleep(left.min(Duration::from_millis(10)));
        }
    }
}

/// How long the writes of each consumer have run in the current batch.
#[derive(Default)]
struct ConsumerTimes(HashMap<Option<Consumer>, Duration>);

impl ConsumerTimes {
    fn add(&mut self, consumer: Option<Consumer>, took: Duration) {
        *self.0.entry(consumer).or_default() += took;
    }

    /// Whether the batch may take another write of `consumer`: the consumer has time left, or the batch has no writes of
    /// other consumers.
    fn may_add(&self, consumer: Option<Consumer>) -> bool {
        self.0.get(&consumer).is_none_or(|used| *used < CONSUMER_TIME || self.0.len() == 1)
    }
}

/// Whether the store was asked to close.
#[derive(PartialEq, Eq)]
enum StoreClosed {
    Yes,
    No,
}

/// Refuses a task while the file is closed.
fn refuse(task: Task) -> StoreClosed {
    match task {
        Task::Write(NextWrite { write, .. }) => {
            write.answer(Err(Error::unavailable(RETRY_AFTER, "the data file is closed")));
        }
        // Dropping the reply channel gives the caller 503.
        Task::Quiesce(_)
        | Task::ExclusiveFile(_)
        | Task::Probe
        | Task::Inspect(_)
        | Task::EmptyCommit(_) => {}
        Task::Close => return StoreClosed::Yes,
    }
    StoreClosed::No
}

/// Returns a snapshot of `database`. If a read of the snapshot fails, it queues [`Task::Probe`]. If the queue is full, the
/// writer will detect the failure by itself.
pub(super) fn snapshot(database: &Database, writer: &Weak<Sender>) -> Result<Snapshot> {
    let writer = Weak::clone(writer);
    let alarm = move || {
        if let Some(writer) = writer.upgrade() {
            let _ = writer.send(Task::Probe);
        }
    };
    Ok(Snapshot::new(begin_read(database)?, Box::new(alarm)))
}
