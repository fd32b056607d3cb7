//! The tasks of the writer thread.

use redb::Database;
use tokio::sync::oneshot;

use crate::fair_queue::Consumer;

use super::queued::QueuedWrite;

/// A task for the writer thread.
pub(super) enum Task {
    /// Run a write in the next batch.
    Write(NextWrite),
    /// Run a function between two transactions, while no write is in progress.
    Quiesce(Box<dyn FnOnce() + Send>),
    /// Pass the open database to a function, then open the file again. The function returns a second function, which
    /// runs after the file was opened and reports the result.
    ExclusiveFile(Box<dyn FnOnce(Database) -> Box<dyn FnOnce() + Send> + Send>),
    /// Check that the file is still usable, because a read failed.
    Probe,
    /// Run a function with the open database between two transactions.
    Inspect(Box<dyn FnOnce(&Database) + Send>),
    /// Commit an empty transaction, then send the reply.
    EmptyCommit(oneshot::Sender<()>),
    /// Close the file and stop.
    Close,
}

/// The write that runs next.
pub(super) struct NextWrite {
    pub(super) consumer: Option<Consumer>,
    pub(super) write: Box<dyn QueuedWrite>,
    /// Whether the consumer is in its cooldown. If so, and the write is large, the writer puts it back.
    pub(super) is_cooling_down: bool,
}
