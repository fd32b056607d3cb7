//! Numbers that nearly every write changes, counts and sequences: kept aside while a batch runs and
//! written once at its end.

use std::collections::BTreeMap;

use super::schema::Table;

/// The numbers that a batch has changed so far.
#[derive(Default)]
pub(super) struct Numbers(BTreeMap<(Table, Vec<u8>), u64>);

impl Numbers {
    /// The number under `key`, if this batch has changed it.
    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<u64> {
        if !matches!(table, Table::Counts | Table::Sequences) {
            return None;
        }
        self.0.get(&(table, key.to_vec())).copied()
    }

    pub(super) fn set(&mut self, table: Table, key: &[u8], number: u64) {
        self.0.insert((table, key.to_vec()), number);
    }

    /// Them all, to be written.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Table, Vec<u8>, u64)> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|((table, key), number)| (table, key, number))
    }
}
