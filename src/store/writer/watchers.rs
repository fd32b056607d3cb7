//! Watching tables. A background task is woken when a write adds records to its tables, or when another node of a shared
//! database changed them. What must follow such a change before any read is called before the state is shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::base::error::Result;
use crate::base::secret::SigningSecret;
use crate::store::changes::batch_diff::{BatchDiff, CommitsOf};
use crate::store::format::secrets::stored_secret;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;
use crate::store::write::WriteTx;

use super::Store;

/// The watchers of a store.
#[derive(Default)]
pub struct Watchers(RwLock<Vec<Watcher>>);

struct Watcher {
    tables: &'static [Table],
    commits: CommitsOf,
    call: Call,
}

type Call = Box<dyn Fn(&Snapshot) -> Result<()> + Send + Sync>;

impl Watchers {
    /// Calls the watchers of what `diff` changes, or all if it is not known what changed. `state` returns the new state; it
    /// is called only if there are such watchers.
    pub fn call(
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
    pub(crate) fn before_shown(
        &self,
        tables: &'static [Table],
        commits: CommitsOf,
        call: impl Fn(&Snapshot) -> Result<()> + Send + Sync + 'static,
    ) {
        let watcher = Watcher { tables, commits, call: Box::new(call) };
        self.shared.watchers.0.write().unwrap_or_else(PoisonError::into_inner).push(watcher);
    }

    /// Calls `listener` with the signing secret before a state with another one is shown. Only a shared database has such
    /// states: another node may rotate the secret.
    pub(crate) fn on_new_secret(
        &self,
        listener: impl Fn(&SigningSecret) -> Result<()> + Send + Sync + 'static,
    ) {
        let pass_on = move |tx: &Snapshot| listener(&stored_secret(tx)?);
        self.before_shown(&[Table::Meta], CommitsOf::AllNodes, pass_on);
    }

    /// Begins to wake a task when other nodes change one of these tables.
    pub(crate) fn watch(&self, tables: &'static [Table]) -> Watch {
        let watch = Watch { tables, task: Arc::default() };
        let woken = watch.clone();
        self.before_shown(tables, CommitsOf::OtherNodes, move |_| {
            woken.wake();
            Ok(())
        });
        watch
    }
}

/// Wakes a task that works on the records of some tables. Clones wake the same task.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    tables: &'static [Table],
    task: Arc<Notify>,
}

impl Watch {
    /// Wakes the task. If it does not wait now, it does not wait the next time.
    pub(crate) fn wake(&self) {
        self.task.notify_one();
    }

    /// Waits until the task is woken.
    pub(crate) async fn woken(&self) {
        self.task.notified().await;
    }

    /// Returns what wakes the task after a write.
    pub(crate) fn on_commit(&self) -> WakeOnCommit {
        WakeOnCommit { watch: self.clone(), is_due: AtomicBool::new(false) }
    }
}

/// Wakes a task when it is dropped, if a write added records to its tables.
///
/// The rule of the write owns it, so it is dropped when the write is on disk, even if the client has disconnected.
#[derive(Debug)]
pub(crate) struct WakeOnCommit {
    watch: Watch,
    is_due: AtomicBool,
}

impl WakeOnCommit {
    /// Remembers whether the write added or updated records in the tables.
    pub(crate) fn note(&self, tx: &WriteTx<'_>) {
        let tables = self.watch.tables;
        let mut changes = tx.changes().iter();
        if changes.any(|change| change.after.is_some() && tables.contains(&change.table)) {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for WakeOnCommit {
    fn drop(&mut self) {
        if *self.is_due.get_mut() {
            self.watch.wake();
        }
    }
}
