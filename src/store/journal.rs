//! The values that a batch changes, noted for copies under way and for the origin.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::origin::Row;
use super::schema::Table;
use super::value_log::ValueLog;

/// Where a batch notes the values that it changes.
#[derive(Default)]
pub(super) struct NotedChanges {
    logs: Vec<Arc<ValueLog>>,
    journal: Option<Journal>,
}

impl NotedChanges {
    /// Begins the notes of a batch for the logs of copies under way.
    pub(super) fn begin(logs: &[Arc<ValueLog>]) -> Self {
        Self { logs: logs.to_vec(), journal: None }
    }

    /// Collects the rows that change from now on.
    pub(super) fn begin_journal(&mut self) {
        self.journal = Some(Journal::default());
    }

    /// Notes that `key` has this sealed value now; `None` if it was removed.
    pub(super) fn note(&mut self, table: Table, key: &[u8], sealed: Option<&[u8]>) {
        for log in &self.logs {
            log.add(table, key, sealed);
        }
        if let Some(journal) = &mut self.journal {
            journal.note(table, key, sealed);
        }
    }

    /// Returns the rows for the origin, if they were collected.
    pub(super) fn into_journal(self) -> Option<Journal> {
        self.journal
    }
}

/// The changed values of a batch, each as the batch leaves it.
#[derive(Default)]
pub(super) struct Journal(BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>);

impl Journal {
    fn note(&mut self, table: Table, key: &[u8], sealed: Option<&[u8]>) {
        self.0.insert((table, key.to_vec()), sealed.map(<[u8]>::to_vec));
    }

    /// Returns the changed rows, each once.
    pub(super) fn into_rows(self) -> Vec<Row> {
        self.0.into_iter().map(|((table, key), sealed)| Row { table, key, sealed }).collect()
    }
}
