//! Watchers of tables: they are called before a node of a shared database shows a commit that changes their tables. So
//! background work begins when its records change elsewhere.

use std::sync::{PoisonError, RwLock};

use crate::error::Result;

use super::Store;
use super::batch_diff::{BatchDiff, CommitsOf};
use super::schema::Table;
use super::snapshot::Snapshot;

/// The watchers of a store.
#[derive(Default)]
pub(super) struct Watchers(RwLock<Vec<Watcher>>);

struct Watcher {
    tables: &'static [Table],
    commits: CommitsOf,
    call: Box<dyn Fn(&Snapshot) -> Result<()> + Send + Sync>,
}

impl Watchers {
    /// Calls the watchers of what `diff` changes, or all if it is not known what changed. `state` returns the new state; it
    /// is called only if there are such watchers.
    pub(super) fn call(
        &self,
        diff: Option<&BatchDiff>,
        state: impl FnOnce() -> Result<Snapshot>,
    ) -> Result<()> {
        let watchers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_concerned = |watcher: &&Watcher| {
            diff.is_none_or(|diff| diff.changes_any(watcher.tables, watcher.commits))
        };
        let mut concerned = watchers.iter().filter(is_concerned).peekable();
        if concerned.peek().is_none() {
            return Ok(());
        }
        let state = state()?;
        concerned.try_for_each(|watcher| (watcher.call)(&state))
    }
}

impl Store {
    /// Calls `call` when these commits change one of these tables. `call` gets the new state before any read does, and must
    /// return at once. If it fails, the copy is opened again. A data file has one node, and calls nothing.
    pub(crate) fn watch(
        &self,
        tables: &'static [Table],
        commits: CommitsOf,
        call: impl Fn(&Snapshot) -> Result<()> + Send + Sync + 'static,
    ) {
        let watcher = Watcher { tables, commits, call: Box::new(call) };
        self.shared.watchers.0.write().unwrap_or_else(PoisonError::into_inner).push(watcher);
    }
}
