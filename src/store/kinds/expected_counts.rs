//! The counts and sums that a check computes from the records, to compare them with the stored ones.

use std::collections::BTreeMap;

use crate::store::reads::snapshot::Snapshot;
use crate::store::record::{Record, byte_usage};

/// The counts and sums that follow from the records, by their keys.
#[derive(Default)]
pub struct ExpectedCounts(BTreeMap<Vec<u8>, u64>);

impl ExpectedCounts {
    /// Adds the contribution of one record. A record that it refers to and that cannot be read adds nothing:
    /// `check` reports that record's damage separately.
    pub(in crate::store) fn add<R: Record>(
        &mut self,
        tx: &Snapshot,
        key: &[u8],
        payload: &[u8],
        record: &R,
    ) {
        let counted = R::COUNTS.iter().filter_map(|count| Some((count.key(record)?, 1)));
        let summed = R::SUMS.iter().filter_map(|sum| sum.summand(tx, payload).ok());
        let owner = record.owner(tx).ok().flatten();
        let stored = owner.map(|owner| (owner.key(), byte_usage::size(key, payload)));
        for (key, adds) in counted.chain(summed).chain(stored) {
            *self.0.entry(key).or_default() += adds;
        }
    }

    /// Removes and returns the count under `key`. A count of 0 is as good as absent: the file has no such value.
    pub(in crate::store) fn take(&mut self, key: &[u8]) -> Option<u64> {
        self.0.remove(key).filter(|count| *count > 0)
    }

    /// Returns the counts that were not taken.
    pub(in crate::store) fn into_rest(self) -> impl Iterator<Item = (Vec<u8>, u64)> {
        self.0.into_iter().filter(|(_, count)| *count > 0)
    }
}
