//! The one writer thread: group commit, and getting the file back after a failure.
//!
//! Writes queue up while a commit syncs; the writer then runs all that is queued in one redb
//! transaction, syncs once, and only then answers. So a 2xx is on disk, and N writers share one sync.
//! Consumers take turns, write by write, and share the time of a batch.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use redb::Database;
use tokio::runtime::Handle;

use crate::error::{Error, Result};
use crate::fair::Consumer;

use super::disk::Drive;
use super::engine::{RETRY_AFTER, begin, begin_read, probe, storage_error};
use super::file::{self, Lock};
use super::queue::{Next, Receiver, Sender, Turn};
use super::queued::Write;
use super::rests::LARGE;
use super::rewrite;
use super::snapshot::Snapshot;
use super::watch::{Look, Watched};
use super::write::WriteTx;

/// How many writes one transaction takes at the most.
const BATCH_WRITES: usize = 512;
/// How long one transaction gathers writes at the most.
const BATCH_TIME: Duration = Duration::from_millis(10);
/// How long the writes of one consumer run in a batch that holds writes of others.
const CONSUMER_TIME: Duration = Duration::from_millis(2);
/// How often a transaction waits for another write, while it has fewer than were under way when the last
/// one ended: those who were answered mostly ask again at once, and one sync for all costs less than two.
const GATHER_STEPS: usize = 20;
/// How long it waits each time.
const GATHER_STEP: Duration = Duration::from_micros(50);
/// The first wait where the file failed, for those who read where it was a write; it doubles up to [`REOPEN_LAST`] where the
/// file cannot be opened.
const REOPEN_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between two attempts to open the file again.
const REOPEN_LAST: Duration = Duration::from_secs(5);

/// What the writer thread and everybody else share.
pub(super) struct Shared {
    /// The state that the last commit left; none while the file is closed.
    pub(super) snapshot: ArcSwapOption<Snapshot>,
    /// Whether the file is open and its last commit succeeded.
    pub(super) ready: AtomicBool,
    /// How often the file was closed: what [`Snapshot::opening`] tells.
    pub(super) openings: AtomicU64,
    /// What others watch.
    pub(super) watched: Watched,
}

impl Shared {
    /// From now on nothing is read or written.
    fn close(&self) {
        self.ready.store(false, Ordering::Release);
        self.snapshot.store(None);
        self.openings.fetch_add(1, Ordering::Relaxed);
        self.watched.closed();
    }
}

/// Closes the store when the writer thread ends, also by a panic.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What the writer thread is asked to do.
pub(super) enum Task {
    /// Run a write with the next batch.
    Write(Turn),
    /// Run something between two transactions, while no write is under way.
    Pause(Box<dyn FnOnce() + Send>),
    /// Hand over the open file, and open it again. What comes back tells how it went, once the file is open.
    Exchange(Box<dyn FnOnce(Database) -> Box<dyn FnOnce() + Send> + Send>),
    /// Find out whether the file still serves: a read failed.
    Probe,
    /// Do something with the open file between two transactions.
    Look(Box<Look>),
    /// Finish, close the file and end.
    Close,
}

/// The writer thread's own state.
pub(super) struct Writer {
    pub(super) drive: Drive,
    pub(super) path: PathBuf,
    pub(super) cache: usize,
    pub(super) lock: Lock,
    pub(super) queue: Receiver,
    /// The other end of `queue`, for snapshots to tell that a read failed.
    pub(super) sender: Weak<Sender>,
    pub(super) shared: Arc<Shared>,
    /// How many writes were under way when the last batch ended.
    pub(super) expected: usize,
    /// Where answers are sent from: waking its own tasks is cheaper than being woken for each.
    pub(super) runtime: Option<Handle>,
}

impl Writer {
    /// Serves the queue until it is told to close or nobody can ask any more, then closes the file.
    pub(super) fn run(mut self, database: Database) {
        let _closing = Closing(Arc::clone(&self.shared));
        let left = self.serve(database);
        self.shared.close();
        drop(left);
        drop(self.lock);
    }

    fn serve(&mut self, mut database: Database) -> Option<Database> {
        while let Some(task) = self.queue.recv() {
            let task = match task {
                Task::Exchange(work) => {
                    database = self.exchange(database, work)?;
                    continue;
                }
                task => task,
            };
            let wrote = matches!(task, Task::Write(..));
            // What panics here is redb, and what it holds in memory afterwards proves nothing.
            let outcome = catch_unwind(AssertUnwindSafe(|| match task {
                Task::Write(first) => self.batch(&database, first).map(|()| true),
                Task::Pause(work) => {
                    self.shared.watched.occupied(work);
                    Ok(true)
                }
                Task::Probe => probe(&database).map(|()| true),
                Task::Look(look) => look(self, &database).map(|()| true),
                Task::Close | Task::Exchange(_) => Ok(false),
            }));
            match outcome.unwrap_or_else(|_| Err(Error::internal("redb panicked"))) {
                Ok(true) => {}
                Ok(false) => break,
                Err(cause) => database = self.reopen(database, wrote, &cause)?,
            }
        }
        Some(database)
    }

    /// Runs `first` and the writes that are queued behind it in one transaction.
    fn batch(&mut self, database: &Database, first: Turn) -> Result<()> {
        let mut ran = Vec::new();
        let committed = self.transact(database, first, &mut ran);
        let closed = || Error::unavailable(RETRY_AFTER, "the data file is closed");
        let answer = match &committed {
            Ok(()) => self.shared.snapshot.load_full().ok_or_else(closed),
            Err(cause) => {
                // Before the answer: whoever has it finds the store closed.
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

    fn transact(
        &mut self,
        database: &Database,
        first: Turn,
        ran: &mut Vec<Box<dyn Write>>,
    ) -> Result<()> {
        let begun = Instant::now();
        let transaction = begin(database)?;
        let mut tx = WriteTx::new(&transaction);
        let (mut changed, mut waits) = (false, GATHER_STEPS);
        let (mut shares, mut next) = (Shares::default(), Some(first));
        while let Some(Turn { consumer, mut write, rests }) = next.take() {
            let mut is_last = false;
            if !write.abandoned() {
                let started = Instant::now();
                tx.begin(if rests { LARGE } else { usize::MAX });
                let stays = write.run(&mut tx) && !tx.is_too_large();
                if tx.is_too_large() {
                    self.queue.put_back(consumer, write);
                } else {
                    ran.push(write);
                }
                if stays {
                    changed |= tx.wrote_anything();
                    is_last = tx.ends_batch();
                    self.queue.wrote(consumer, tx.records_changed());
                    tx.keep()?;
                } else {
                    tx.take_back()?;
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

    /// The next write of the batch; waits for it a little, while fewer came than are expected.
    fn next_of_batch(&mut self, ran: usize, shares: &Shares, waits: &mut usize) -> Option<Turn> {
        loop {
            match self.queue.next_of_batch(|consumer| shares.may_add(consumer)) {
                Next::Write(turn) => return Some(turn),
                Next::Nothing if ran < self.expected && *waits > 0 => {}
                Next::Nothing | Next::End => return None,
            }
            *waits -= 1;
            std::thread::sleep(GATHER_STEP);
        }
    }

    /// Shows the committed state to readers.
    pub(super) fn publish(&self, database: &Database) -> Result<()> {
        let opening = self.shared.openings.load(Ordering::Relaxed);
        let snapshot = snapshot(database, &self.sender)?.of_opening(opening);
        self.shared.snapshot.store(Some(Arc::new(snapshot)));
        Ok(())
    }

    /// Hands the file to `work` and opens it again. None when the store is closed before it is open again.
    fn exchange(
        &mut self,
        database: Database,
        work: Box<dyn FnOnce(Database) -> Box<dyn FnOnce() + Send> + Send>,
    ) -> Option<Database> {
        // Where it panics, whoever waits for its answer is told 503 by its absence.
        let tell = self.shared.watched.occupied(|| {
            self.shared.close();
            catch_unwind(AssertUnwindSafe(|| work(database))).ok()
        });
        let opened = self.open_again(Duration::ZERO);
        if let Some(tell) = tell {
            tell();
        }
        opened
    }

    /// Closes the file and opens it again, as often as it takes. Meanwhile nothing is served: after an
    /// input/output error the handle refuses all writes, and what it holds in memory proves nothing.
    /// None when the store is closed before it is open again. After a failed write it is opened at once, for those who
    /// read; writes rest.
    fn reopen(&mut self, database: Database, wrote: bool, cause: &Error) -> Option<Database> {
        tracing::error!(%cause, "the data file failed; opening it again");
        self.shared.close();
        drop(database);
        let (first, rest) =
            if wrote { (Duration::ZERO, REOPEN_FIRST) } else { (REOPEN_FIRST, Duration::ZERO) };
        if self.refuse_for(first) == Ended::Yes {
            return None;
        }
        self.open_again(rest)
    }

    /// Opens the file, as often as it takes. Reads go on at once, writes after a `rest`.
    fn open_again(&mut self, rest: Duration) -> Option<Database> {
        let mut wait = REOPEN_FIRST;
        loop {
            match self.try_open() {
                Ok(database) => {
                    tracing::info!("the data file is open again");
                    if self.refuse_for(rest) == Ended::Yes {
                        return None;
                    }
                    self.shared.ready.store(true, Ordering::Release);
                    return Some(database);
                }
                Err(cause) => tracing::error!(%cause, "the data file cannot be opened yet"),
            }
            wait = (wait * 2).min(REOPEN_LAST);
            if self.refuse_for(wait) == Ended::Yes {
                return None;
            }
        }
    }

    fn try_open(&self) -> Result<Database> {
        if self.drive.distrusted() {
            self.shared.watched.occupied(|| rewrite::rewrite(&self.drive, &self.path))?;
        }
        let database = file::open(&self.drive, &self.path, self.cache).map_err(Error::internal)?;
        self.publish(&database)?;
        self.drive.trust();
        Ok(database)
    }

    /// Refuses what is queued for a while.
    fn refuse_for(&mut self, wait: Duration) -> Ended {
        let until = Instant::now() + wait;
        loop {
            if let Some(task) = self.queue.try_recv() {
                if refuse(task) == Ended::Yes {
                    return Ended::Yes;
                }
                continue;
            }
            if self.queue.is_closed() {
                return Ended::Yes;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ended::No;
            }
            std::thread::sleep(left.min(Duration::from_millis(10)));
        }
    }
}

/// How long the writes of each consumer ran in a batch.
#[derive(Default)]
struct Shares(HashMap<Option<Consumer>, Duration>);

impl Shares {
    fn add(&mut self, consumer: Option<Consumer>, took: Duration) {
        *self.0.entry(consumer).or_default() += took;
    }

    /// Whether one more write of `consumer` may join: its share is not used up, or the batch holds no other's writes.
    fn may_add(&self, consumer: Option<Consumer>) -> bool {
        self.0.get(&consumer).is_none_or(|used| *used < CONSUMER_TIME || self.0.len() == 1)
    }
}

/// Whether the store was closed.
#[derive(PartialEq, Eq)]
enum Ended {
    Yes,
    No,
}

/// Refuses a task while the file is closed.
fn refuse(task: Task) -> Ended {
    match task {
        Task::Write(Turn { write, .. }) => {
            write.answer(Err(Error::unavailable(RETRY_AFTER, "the data file is closed")));
        }
        // Whoever waits for its answer is told 503 by its absence.
        Task::Pause(_) | Task::Exchange(_) | Task::Probe | Task::Look(_) => {}
        Task::Close => return Ended::Yes,
    }
    Ended::No
}

/// The present state of `database`. Where a read of it fails, the writer is told; a full queue means that
/// it is about to notice by itself.
pub(super) fn snapshot(database: &Database, writer: &Weak<Sender>) -> Result<Snapshot> {
    let writer = Weak::clone(writer);
    let alarm = move || {
        if let Some(writer) = writer.upgrade() {
            let _ = writer.send(Task::Probe);
        }
    };
    Ok(Snapshot::new(begin_read(database)?, Box::new(alarm)))
}
