//! What a batch changes in the file. Copies under way, the origin and the version of the access tables follow it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::values::position::OriginRow;
use crate::store::values::schema::Table;

use super::value_log::{ValueLog, ValueLogs};

/// Whose commits somebody watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitsOf {
    /// Those of this node and of others.
    AllNodes,
    /// Those that this node takes from others.
    OtherNodes,
}

/// What a batch changes in the file. The values themselves are not kept, except for an origin.
#[derive(Default)]
pub struct BatchDiff {
    /// The tables with changes that the batch took from other nodes.
    taken: Vec<Table>,
    /// The tables with other changes.
    tables: Vec<Table>,
    /// The logs of copies under way.
    logs: Vec<Arc<ValueLog>>,
    /// The changed values for the origin, each as the batch leaves it.
    rows: Option<ChangedRows>,
}

/// Sealed values by table and key; `None` for a removed value.
type ChangedRows = BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>;

impl BatchDiff {
    /// Begins the diff of a batch, which these logs note too.
    pub fn begin(logs: &ValueLogs) -> Self {
        Self { logs: logs.begin_commit(), ..Self::default() }
    }

    /// Ends what the batch takes from other nodes. Collects what changes from now on for the origin.
    pub fn end_taking(&mut self) {
        self.taken = std::mem::take(&mut self.tables);
        self.rows = Some(ChangedRows::new());
    }

    /// Notes that values of `table` change.
    pub fn add_table(&mut self, table: Table) {
        if !self.tables.contains(&table) {
            self.tables.push(table);
        }
    }

    /// Notes that `key` has this sealed value now; `None` if it was removed.
    pub fn add(&mut self, table: Table, key: &[u8], sealed: Option<&[u8]>) {
        for log in &self.logs {
            log.add(table, key, sealed);
        }
        if let Some(rows) = &mut self.rows {
            rows.insert((table, key.to_vec()), sealed.map(<[u8]>::to_vec));
        }
    }

    /// Whether the batch changed tables that decide access.
    pub fn changes_access(&self) -> bool {
        self.taken.iter().chain(&self.tables).any(|table| table.decides_access())
    }

    /// Whether these commits changed any of `tables`.
    pub fn changes_any(&self, tables: &[Table], of: CommitsOf) -> bool {
        let is_own = |table: &Table| of == CommitsOf::AllNodes && self.tables.contains(table);
        tables.iter().any(|table| self.taken.contains(table) || is_own(table))
    }

    /// Returns the rows that were collected for the origin, each once, and keeps none.
    pub fn take_rows(&mut self) -> Vec<OriginRow> {
        let rows = self.rows.take().into_iter().flatten();
        rows.map(|((table, key), sealed)| OriginRow { table, key, sealed }).collect()
    }

    /// Ends the commit in the logs. Call this once it is in the file.
    pub fn end_commit(&self) {
        for log in &self.logs {
            log.end_commit();
        }
    }
}
