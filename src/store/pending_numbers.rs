//! Counts, sums and sequences: numbers that nearly every write changes. They stay in memory while a batch
//! runs and are written once at its end.

use std::collections::BTreeMap;

use super::schema::Table;

/// The numbers that a batch has changed so far.
#[derive(Default)]
pub(super) struct PendingNumbers(BTreeMap<(Table, Vec<u8>), u64>);

impl PendingNumbers {
    /// Returns the number under `key`, if this batch has changed it.
    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<u64> {
        if !matches!(table, Table::Counts | Table::Sequences) {
            return None;
        }
        self.0.get(&(table, key.to_vec())).copied()
    }

    pub(super) fn set(&mut self, table: Table, key: &[u8], number: u64) {
        self.0.insert((table, key.to_vec()), number);
    }

    /// Returns all changed numbers, to write them, and forgets them.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Table, Vec<u8>, u64)> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|((table, key), number)| (table, key, number))
    }
}
