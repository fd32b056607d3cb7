//! Listeners to the rows that a copy takes from other nodes: background work begins when its records change elsewhere.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use super::Store;
use super::schema::Table;

/// Calls functions after rows of other nodes show in a copy.
#[derive(Default)]
pub(super) struct TakenListeners(RwLock<Vec<Listener>>);

struct Listener {
    tables: &'static [Table],
    call: Box<dyn Fn() + Send + Sync>,
}

impl TakenListeners {
    /// Calls the listeners to any of these tables.
    pub(super) fn call(&self, taken: &BTreeSet<Table>) {
        self.call_if(|listener| listener.tables.iter().any(|table| taken.contains(table)));
    }

    /// Calls all listeners, because it is not known what changed.
    pub(super) fn call_all(&self) {
        self.call_if(|_| true);
    }

    fn call_if(&self, is_concerned: impl Fn(&Listener) -> bool) {
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().filter(|listener| is_concerned(listener)).for_each(|it| (it.call)());
    }
}

impl Store {
    /// Calls `call` after each commit of another node that changes one of these tables, when [`fresh`](Self::fresh) shows
    /// it. `call` must return at once. A data file has no other nodes.
    pub(crate) fn on_taken(
        &self,
        tables: &'static [Table],
        call: impl Fn() + Send + Sync + 'static,
    ) {
        let listener = Listener { tables, call: Box::new(call) };
        let mut listeners = self.shared.taken.0.write().unwrap_or_else(PoisonError::into_inner);
        listeners.push(listener);
    }
}
