//! A write that waits for the writer thread, and where its answer goes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::{Error, Result};

use super::snapshot::Snapshot;
use super::write::WriteTx;

/// A queued write, whatever its answer's type.
pub(super) trait Write: Send {
    /// Whether nobody waits for the answer any more.
    fn abandoned(&self) -> bool;
    /// Runs the rule; answers whether what it wrote stays.
    fn run(&mut self, tx: &mut WriteTx<'_>) -> bool;
    /// Answers, once it is known what became of the transaction: the state that its commit left, or why it failed.
    fn answer(self: Box<Self>, committed: Result<Arc<Snapshot>>);
}

/// What a rule returned, with the state that the commit of its batch left; or why that commit failed.
type Written<T> = Result<Result<(T, Arc<Snapshot>)>>;

/// A rule, and where its answer goes.
pub(super) struct Queued<T, F> {
    rule: F,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Written<T>>,
}

impl<T, F> Queued<T, F> {
    pub(super) fn new(rule: F) -> (Box<Self>, oneshot::Receiver<Written<T>>) {
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
        let outcome = outcome.and_then(|done| tx.settle().map(|()| done));
        let stays = outcome.is_ok();
        self.outcome = Some(outcome);
        stays
    }

    /// A refusal waits for the commit too: it may rest on what a neighbour of the batch wrote.
    fn answer(self: Box<Self>, committed: Result<Arc<Snapshot>>) {
        let outcome = self.outcome.unwrap_or_else(|| Err(Error::internal("a write did not run")));
        let _ = self.reply.send(committed.map(|snapshot| Ok((outcome?, snapshot))));
    }
}
