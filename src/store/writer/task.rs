//! The tasks of the writer thread, and a queued write with the channel for its result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

use redb::Database;
use tokio::sync::oneshot;

use crate::base::erased::{AnyValue, erase, typed};
use crate::base::error::{Error, Result};
use crate::fair::fair_queue::Consumer;
use crate::store::disk::engine::{close, unavailable};
use crate::store::origin::Fault;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::position::{OriginRow, Position};
use crate::store::write::{WriteTx, write_alone};

use super::Store;

/// A task for the writer thread.
pub enum Task {
    /// Run a write in the next batch.
    Write(NextWrite),
    /// Run a function between two transactions, while no write is in progress.
    Quiesce(Box<dyn FnOnce() + Send>),
    /// Pass the open database to a function, then open the file again.
    ExclusiveFile(ExclusiveWork),
    /// Replace the file.
    Replace(Replace),
    /// Run a function with the open database between two transactions. The file is opened again if it fails.
    Inspect(Inspection),
    /// Commit an empty transaction, then send the reply.
    EmptyCommit(oneshot::Sender<()>),
    /// Take rows of the origin into the copy.
    TakeRows(NewRows),
    /// Make all commits of the copy durable.
    Sync,
    /// Close the file and stop.
    Close,
}

/// What a copy at a position lacks.
pub struct NewRows {
    /// The position of the copy.
    pub known: Position,
    pub lacked: Lacked,
    /// Receives the result. Dropped if the copy could not take the rows now.
    pub reply: mpsc::Sender<Result<(), Fault>>,
}

/// The rows that a copy lacks, if the origin returned them.
pub enum Lacked {
    /// The copy lacks these rows up to the commit `head`.
    Rows { head: Position, rows: Vec<OriginRow> },
    /// The copy lacks more rows than are kept in memory.
    Many,
    /// The copy is of another past, and must be made again.
    Past,
}

/// Reads the open database.
pub type Inspection = Box<dyn FnOnce(&Database) -> Result<()> + Send>;

/// Uses the file alone. The function that it returns runs after the file was opened again, and reports the result.
pub type ExclusiveWork = Box<dyn FnOnce(Database) -> Box<dyn FnOnce() + Send> + Send>;

/// Replaces the file of the open database. The number is the size of the page cache in bytes.
pub type Replace = Box<dyn FnOnce(&Database, usize) -> Replacement + Send>;

/// The result of a replacement of the file.
pub enum Replacement {
    /// The file was replaced by this one, which has the same content. Then call the function.
    Replaced(Database, Box<dyn FnOnce() + Send>),
    /// The file was not replaced. Then call the function.
    Kept(Box<dyn FnOnce() + Send>),
    /// It is uncertain which of the two files a power cut would leave, or what the open one contains.
    Unknown(Error),
}

/// The write that runs next.
pub struct NextWrite {
    /// `None` for a write of the service itself or of its operator.
    pub consumer: Option<Consumer>,
    pub write: QueuedWrite,
}

impl Store {
    /// Runs `work` on the writer thread between two transactions, so the bytes of the file are exactly the
    /// last commit. Writes wait meanwhile; reads do not.
    ///
    /// # Errors
    /// 503 when the queue is full or the file is closed.
    pub(crate) fn quiesce<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        typed(self.quiesce_erased(Box::new(move || erase(work()))))
    }

    async fn quiesce_erased(&self, work: Box<dyn FnOnce() -> AnyValue + Send>) -> Result<AnyValue> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Task::Quiesce(Box::new(move || {
            let _ = reply.send(work());
        })))?;
        flatten_reply(answer.await)
    }

    /// Passes the open file to `work` on the writer thread and opens the file again afterwards. Until then
    /// every read and write fails with 503.
    ///
    /// # Errors
    /// The error of `work`; 503 when the queue is full or the file is closed.
    pub(crate) fn with_exclusive_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(Database) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        typed(self.with_exclusive_file_erased(Box::new(move |database| work(database).map(erase))))
    }

    async fn with_exclusive_file_erased(
        &self,
        work: Box<dyn FnOnce(Database) -> Result<AnyValue> + Send>,
    ) -> Result<AnyValue> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Task::ExclusiveFile(Box::new(move |database| {
            let outcome = work(database);
            Box::new(move || drop(reply.send(outcome)))
        })))?;
        flatten_reply(answer.await)?
    }

    /// Closes the file, runs `work` on the writer thread, and opens the file again. Until then every read and write fails
    /// with 503.
    ///
    /// # Errors
    /// 503 when the queue is full, the file is closed, or it cannot be closed.
    #[doc(hidden)]
    pub async fn closed_while(&self, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let closed = move |database| {
            close(database)?;
            work();
            Ok(())
        };
        self.with_exclusive_file(closed).await
    }

    /// Runs `rule` in its own transaction. After the commit, runs `then` before any other request is served,
    /// so that the file and the memory of this process change together. Requests fail with 503 meanwhile. In a shared database
    /// this is an ordinary write, and the listener of [`on_new_secret`](Self::on_new_secret) runs instead of `then`.
    ///
    /// # Errors
    /// The error of the rule; 503 when the file is closed or the commit failed.
    pub(crate) async fn exclusive_write<T: Send + 'static>(
        &self,
        rule: impl Fn(&mut WriteTx<'_>) -> Result<T> + Send + 'static,
        then: impl FnOnce(&T) -> Result<()> + Send + 'static,
    ) -> Result<T> {
        if self.is_shared() {
            // The listener does what `then` would.
            return self.write(rule).await;
        }
        self.with_exclusive_file(move |database| {
            let answer = write_alone(&database, rule)?;
            then(&answer)?;
            Ok(answer)
        })
        .await
    }

    pub(in crate::store) fn enqueue(&self, task: Task) -> Result<()> {
        self.require_ready()?;
        self.queue.send(task)
    }
}

/// A rule, without the type of its result.
pub type Rule = Box<dyn Fn(&mut WriteTx<'_>) -> Result<AnyValue> + Send>;

/// The result of a rule, with the snapshot after the commit of its batch. The outer error is that of the commit.
type WriteResult = Result<Result<(AnyValue, Arc<Snapshot>)>>;

/// A queued write: a rule, and the channel for its result.
pub struct QueuedWrite {
    rule: Rule,
    outcome: Option<Result<AnyValue>>,
    reply: oneshot::Sender<WriteResult>,
}

impl QueuedWrite {
    pub fn new(rule: Rule) -> (Self, oneshot::Receiver<WriteResult>) {
        let (reply, answer) = oneshot::channel();
        (Self { rule, outcome: None, reply }, answer)
    }

    /// Whether the caller no longer waits for the result.
    pub fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Runs the rule. Returns whether it succeeded, so that its changes are kept.
    pub fn run(&mut self, tx: &mut WriteTx<'_>) -> bool {
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.rule)(tx)))
            .unwrap_or_else(|_| Err(Error::internal("a rule panicked inside a write")));
        let stays = outcome.is_ok();
        self.outcome = Some(outcome);
        stays
    }

    /// Sends the result to the caller. `committed` is the snapshot after the commit of the batch, or its error.
    ///
    /// Also called for errors only after the commit: an error may depend on changes of another write in the batch.
    /// Drops the rule before it sends: the memory that a rule holds counts against its caller.
    pub fn answer(self, committed: Result<Arc<Snapshot>>) {
        let Self { rule, outcome, reply } = self;
        drop(rule);
        let outcome = outcome.unwrap_or_else(|| Err(Error::internal("a write did not run")));
        let _ = reply.send(committed.map(|snapshot| Ok((outcome?, snapshot))));
    }
}

/// Returns what was sent on a reply channel; 503 if the writer dropped the channel.
pub fn flatten_reply<T>(answer: Result<T, oneshot::error::RecvError>) -> Result<T> {
    answer.map_err(|_| unavailable("the data file was closed during the request"))
}
