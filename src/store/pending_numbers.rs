//! Counts, sums and sequences: numbers that nearly every write changes. They stay in memory while a batch
//! runs and are written once at its end.

use std::collections::BTreeMap;

use super::schema::Table;

/// The numbers that a batch has changed so far.
#[derive(Default)]
pub(super) struct PendingNumbers {
    counts: BTreeMap<Vec<u8>, u64>,
    sequences: BTreeMap<Vec<u8>, u64>,
}

impl PendingNumbers {
    /// Returns the number under `key`, if this batch has changed it.
    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<u64> {
        match table {
            Table::Counts => self.counts.get(key).copied(),
            Table::Sequences => self.sequences.get(key).copied(),
            _ => None,
        }
    }

    /// Changes the number under `key` in `table`, which is [`Table::Counts`] or [`Table::Sequences`].
    pub(super) fn set(&mut self, table: Table, key: &[u8], number: u64) {
        let numbers = if table == Table::Counts { &mut self.counts } else { &mut self.sequences };
        match numbers.get_mut(key) {
            Some(known) => *known = number,
            None => drop(numbers.insert(key.to_vec(), number)),
        }
    }

    /// Returns all changed numbers, to write them, and forgets them.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Table, Vec<u8>, u64)> + use<> {
        let Self { counts, sequences } = std::mem::take(self);
        let counts = counts.into_iter().map(|(key, number)| (Table::Counts, key, number));
        let sequences = sequences.into_iter().map(|(key, number)| (Table::Sequences, key, number));
        counts.chain(sequences)
    }
}
