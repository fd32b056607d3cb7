//! The rows that a batch changes, collected for the origin.

use std::collections::BTreeMap;

use super::origin::Row;
use super::schema::Table;

/// The changed values of a batch, each as the batch leaves it.
#[derive(Default)]
pub(super) struct Journal(BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>);

impl Journal {
    /// Notes that `key` has this sealed value now; `None` if it was removed.
    pub(super) fn note(&mut self, table: Table, key: &[u8], sealed: Option<&[u8]>) {
        self.0.insert((table, key.to_vec()), sealed.map(<[u8]>::to_vec));
    }

    /// Returns the changed rows, each once.
    pub(super) fn into_rows(self) -> Vec<Row> {
        self.0.into_iter().map(|((table, key), sealed)| Row { table, key, sealed }).collect()
    }
}
