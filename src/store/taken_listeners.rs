//! Listeners to the rows that a copy takes from other nodes: background work begins when its records change elsewhere.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use crate::error::Result;

use super::Store;
use super::schema::Table;
use super::snapshot::Snapshot;

/// Calls functions when a copy takes rows of other nodes.
#[derive(Default)]
pub(super) struct TakenListeners(RwLock<Vec<Listener>>);

struct Listener {
    tables: &'static [Table],
    call: Box<dyn Fn(&Snapshot) + Send + Sync>,
}

impl Listener {
    /// Whether any of its tables is among `taken`. It is if that is unknown.
    fn is_concerned(&self, taken: Option<&BTreeSet<Table>>) -> bool {
        taken.is_none_or(|taken| self.tables.iter().any(|table| taken.contains(table)))
    }
}

impl TakenListeners {
    /// Calls the listeners to the tables `taken`, or all if it is not known what changed. `state` returns the new state; it
    /// is called only if there are such listeners.
    pub(super) fn call(
        &self,
        taken: Option<&BTreeSet<Table>>,
        state: impl FnOnce() -> Result<Snapshot>,
    ) -> Result<()> {
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let concerned = || listeners.iter().filter(|listener| listener.is_concerned(taken));
        if concerned().next().is_some() {
            let state = state()?;
            concerned().for_each(|listener| (listener.call)(&state));
        }
        Ok(())
    }
}

impl Store {
    /// Calls `call` when this node takes commits of other nodes that change one of these tables. `call` gets the new state
    /// before any read does, and must return at once. A data file has no other nodes.
    pub(crate) fn on_taken(
        &self,
        tables: &'static [Table],
        call: impl Fn(&Snapshot) + Send + Sync + 'static,
    ) {
        let listener = Listener { tables, call: Box::new(call) };
        let mut listeners = self.shared.taken.0.write().unwrap_or_else(PoisonError::into_inner);
        listeners.push(listener);
    }
}
