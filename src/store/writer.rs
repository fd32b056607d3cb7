//! The one writer thread: group commit, and getting the file back after a failure.
//!
//! Writes queue up while a commit syncs; the writer then runs all that is queued in one redb
//! transaction, syncs once, and only then answers. So a 2xx is on disk, and N writers share one sync.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use redb::{Database, Durability, ReadableDatabase};
use tokio::sync::{mpsc, oneshot};

use crate::error::{Error, Result};

use super::file::{self, Lock, storage_error};
use super::read::Snapshot;
use super::write::WriteTx;

/// How many writes one transaction takes at the most.
const BATCH_WRITES: usize = 512;
/// How long one transaction gathers writes at the most.
const BATCH_TIME: Duration = Duration::from_millis(10);
/// The first wait before the file is opened again; it doubles up to [`REOPEN_LAST`].
const REOPEN_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between two attempts to open the file again.
const REOPEN_LAST: Duration = Duration::from_secs(5);
/// What a client is told to wait, in seconds, where the store cannot serve.
pub(super) const RETRY_AFTER: u32 = 1;

/// What the writer thread and everybody else share.
pub(super) struct Shared {
    /// The state that the last commit left; none while the file is closed.
    pub(super) snapshot: ArcSwapOption<Snapshot>,
    /// Whether the file is open and its last commit succeeded.
    pub(super) ready: AtomicBool,
}

impl Shared {
    /// From now on nothing is read or written.
    fn close(&self) {
        self.ready.store(false, Ordering::Release);
        self.snapshot.store(None);
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
    Write(Box<dyn Write>),
    /// Run something between two transactions, while no write is under way.
    Pause(Box<dyn FnOnce() + Send>),
    /// Finish, close the file and end.
    Close,
}

/// A queued write, whatever its answer's type.
pub(super) trait Write: Send {
    /// Whether nobody waits for the answer any more.
    fn abandoned(&self) -> bool;
    /// Runs the rule; answers whether what it wrote stays.
    fn run(&mut self, tx: &mut WriteTx<'_>) -> bool;
    /// Answers, once it is known what became of the transaction.
    fn answer(self: Box<Self>, committed: Result<()>);
}

/// A rule, and where its answer goes.
pub(super) struct Queued<T, F> {
    rule: F,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Queued<T, F> {
    pub(super) fn new(rule: F) -> (Box<Self>, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { rule, outcome: None, reply }), answer)
    }
}

impl<T, F> Write for Queued<T, F>
where
    T: Send,
    F: Fn(&mut WriteTx<'_>) -> Result<T> + Send,
{
    fn abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, tx: &mut WriteTx<'_>) -> bool {
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.rule)(tx)))
            .unwrap_or_else(|_| Err(Error::internal("a rule panicked inside a write")));
        let stays = outcome.is_ok();
        self.outcome = Some(outcome);
        stays
    }

    /// A refusal waits for the commit too: it may rest on what a neighbour of the batch wrote.
    fn answer(self: Box<Self>, committed: Result<()>) {
        let outcome = self.outcome.unwrap_or_else(|| Err(Error::internal("a write did not run")));
        let _ = self.reply.send(committed.and(outcome));
    }
}

/// The writer thread's own state.
pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) cache: usize,
    pub(super) lock: Lock,
    pub(super) queue: mpsc::Receiver<Task>,
    pub(super) shared: Arc<Shared>,
}

impl Writer {
    /// Serves the queue until it is told to close or nobody can ask any more.
    pub(super) fn run(mut self, mut database: Database) {
        let _closing = Closing(Arc::clone(&self.shared));
        while let Some(task) = self.queue.blocking_recv() {
            let outcome = match task {
                Task::Write(first) => self.batch(&database, first),
                Task::Pause(work) => {
                    work();
                    Ok(None)
                }
                Task::Close => break,
            };
            match outcome {
                Ok(None) => {}
                Ok(Some(Task::Pause(work))) => work(),
                Ok(Some(_)) => break,
                Err(cause) => match self.reopen(database, &cause) {
                    Some(reopened) => database = reopened,
                    None => return,
                },
            }
        }
        self.shared.close();
        drop(database);
        drop(self.lock);
    }

    /// Runs `first` and what else is queued in one transaction. A task that is no write ends the
    /// batch and is handed back.
    fn batch(&mut self, database: &Database, first: Box<dyn Write>) -> Result<Option<Task>> {
        let mut ran = Vec::new();
        let mut next = None;
        let committed = self.transact(database, first, &mut ran, &mut next);
        let answer = match &committed {
            Ok(()) => Ok(()),
            Err(cause) => {
                // Before the answer: whoever has it finds the store closed.
                self.shared.close();
                Err(Error::unavailable(RETRY_AFTER, cause))
            }
        };
        for write in ran {
            write.answer(answer.clone());
        }
        committed.map(|()| next)
    }

    fn transact(
        &mut self,
        database: &Database,
        first: Box<dyn Write>,
        ran: &mut Vec<Box<dyn Write>>,
        next: &mut Option<Task>,
    ) -> Result<()> {
        let begun = Instant::now();
        let transaction = begin(database)?;
        let mut tx = WriteTx::new(&transaction);
        let mut changed = false;
        let mut write = first;
        loop {
            if !write.abandoned() {
                let stays = write.run(&mut tx);
                ran.push(write);
                if stays {
                    changed |= tx.wrote_anything();
                    tx.keep();
                } else {
                    tx.take_back()?;
                }
            }
            if ran.len() >= BATCH_WRITES || begun.elapsed() >= BATCH_TIME {
                break;
            }
            match self.queue.try_recv() {
                Ok(Task::Write(queued)) => write = queued,
                Ok(other) => {
                    *next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        drop(tx);
        if !changed {
            return transaction.abort().map_err(storage_error);
        }
        transaction.commit().map_err(storage_error)?;
        self.publish(database)
    }

    /// Shows the committed state to readers.
    fn publish(&self, database: &Database) -> Result<()> {
        self.shared.snapshot.store(Some(Arc::new(snapshot(database)?)));
        Ok(())
    }

    /// Closes the file and opens it again, as often as it takes. Meanwhile nothing is served: after an
    /// input/output error the handle refuses all writes, and what it holds in memory proves nothing.
    fn reopen(&mut self, database: Database, cause: &Error) -> Option<Database> {
        tracing::error!(%cause, "the data file failed; opening it again");
        self.shared.close();
        drop(database);
        let mut wait = REOPEN_FIRST;
        loop {
            if self.refuse_for(wait) {
                return None;
            }
            match self.try_open() {
                Ok(database) => {
                    tracing::info!("the data file is open again");
                    self.shared.ready.store(true, Ordering::Release);
                    return Some(database);
                }
                Err(cause) => tracing::error!(%cause, "the data file cannot be opened yet"),
            }
            wait = (wait * 2).min(REOPEN_LAST);
        }
    }

    fn try_open(&self) -> Result<Database> {
        let database = file::open(&self.path, self.cache).map_err(Error::internal)?;
        self.publish(&database)?;
        Ok(database)
    }

    /// Refuses what is queued for a while; answers whether the store was closed meanwhile.
    fn refuse_for(&mut self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        loop {
            match self.queue.try_recv() {
                Ok(Task::Write(write)) => {
                    write.answer(Err(Error::unavailable(RETRY_AFTER, "the data file is closed")));
                }
                Ok(Task::Pause(work)) => work(),
                Ok(Task::Close) | Err(mpsc::error::TryRecvError::Disconnected) => return true,
                Err(mpsc::error::TryRecvError::Empty) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    std::thread::sleep(left.min(Duration::from_millis(10)));
                }
            }
        }
    }
}

/// Begins a transaction that is on disk when it is committed and opens at once after a crash.
///
/// Two-phase: stored bytes come from outside, and a one-phase commit trusts checksums that an
/// attacker could arrange. Quick repair: a large file opens in a millisecond after SIGKILL.
pub(super) fn begin(database: &Database) -> Result<redb::WriteTransaction> {
    let mut transaction = database.begin_write().map_err(storage_error)?;
    transaction.set_durability(Durability::Immediate).map_err(storage_error)?;
    transaction.set_two_phase_commit(true);
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// The present state of `database`.
pub(super) fn snapshot(database: &impl ReadableDatabase) -> Result<Snapshot> {
    database.begin_read().map(Snapshot::new).map_err(storage_error)
}

#[cfg(test)]
mod tests {
    use crate::secret::Seed;
    use crate::store::{DEFAULT_CACHE, Store};

    #[tokio::test]
    async fn a_store_whose_writer_panicked_is_not_ready() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let mut draw = Seed::take().unwrap().draw();
        let (store, ()) = Store::create(&path, DEFAULT_CACHE, &mut draw, |_, _| Ok(())).unwrap();
        let panicked = store.between_writes(|| panic!("redb cannot go on")).await;
        assert_eq!(panicked.map(drop).unwrap_err().status(), 503);
        store.close().await;
        assert!(!store.ready());
        assert_eq!(store.snapshot().map(drop).unwrap_err().status(), 503);
    }
}
