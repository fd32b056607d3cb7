//! A queued write, and the channel for its result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::store::disk::engine::RETRY_AFTER;
use crate::store::reads::snapshot::Snapshot;
use crate::store::write::WriteTx;

/// A queued write, independent of the type of its result.
pub(in crate::store) trait QueuedWrite: Send {
    /// Whether the caller no longer waits for the result.
    fn is_abandoned(&self) -> bool;
    /// Runs the rule. Returns whether it succeeded, so that its changes are kept.
    fn run(&mut self, tx: &mut WriteTx<'_>) -> bool;
    /// Sends the result to the caller. `committed` is the snapshot after the commit of the batch, or its error.
    fn answer(self: Box<Self>, committed: Result<Arc<Snapshot>>);
}

/// The result of a rule, with the snapshot after the commit of its batch. The outer error is that of the commit.
type WriteResult<T> = Result<Result<(T, Arc<Snapshot>)>>;

/// A rule, and the channel for its result.
pub(in crate::store) struct PendingWrite<T, F> {
    rule: F,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<WriteResult<T>>,
}

impl<T, F> PendingWrite<T, F> {
    pub(in crate::store) fn new(rule: F) -> (Box<Self>, oneshot::Receiver<WriteResult<T>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { rule, outcome: None, reply }), answer)
    }
}

impl<T, F> QueuedWrite for PendingWrite<T, F>
where
    T: Send,
    F: Fn(&mut WriteTx<'_>) -> Result<T> + Send,
{
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, tx: &mut WriteTx<'_>) -> bool {
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.rule)(tx)))
            .unwrap_or_else(|_| Err(Error::internal("a rule panicked inside a write")));
        let stays = outcome.is_ok();
        self.outcome = Some(outcome);
        stays
    }

    /// Also called for errors only after the commit: an error may depend on changes of another write in the batch.
    /// Drops the rule before it sends: the memory that a rule holds counts against its caller.
    fn answer(self: Box<Self>, committed: Result<Arc<Snapshot>>) {
        let Self { rule, outcome, reply } = *self;
        drop(rule);
        let outcome = outcome.unwrap_or_else(|| Err(Error::internal("a write did not run")));
        let _ = reply.send(committed.map(|snapshot| Ok((outcome?, snapshot))));
    }
}

/// Returns what was sent on a reply channel; 503 if the writer dropped the channel.
pub(in crate::store) fn flatten_reply<T>(
    answer: Result<T, oneshot::error::RecvError>,
) -> Result<T> {
    answer
        .map_err(|_| Error::unavailable(RETRY_AFTER, "the data file was closed during the request"))
}
