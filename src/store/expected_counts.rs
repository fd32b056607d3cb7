//! The counts and sums that a check computes from the records, to compare them with the stored ones.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::byte_usage;
use super::record::Record;
use super::snapshot::Snapshot;

/// The counts and sums that follow from the records, by their keys.
#[derive(Default)]
pub struct ExpectedCounts(BTreeMap<Vec<u8>, u64>);

impl ExpectedCounts {
    /// Adds the contribution of one record. A record that it refers to and that cannot be read adds nothing:
    /// `check` reports that record's damage separately.
    pub(super) fn add<R: Record>(&mut self, tx: &Snapshot, key: &[u8], payload: &[u8], record: &R) {
        let counted = R::COUNTS.iter().filter_map(|count| Some((count.key(record)?, 1)));
        let summed = R::SUMS.iter().filter_map(|sum| sum.summand(tx, payload).ok());
        let owner = record.owner(tx).ok().flatten();
        let stored = owner.map(|owner| (owner.key(), byte_usage::size(key, payload)));
        for (key, adds) in counted.chain(summed).chain(stored) {
            *self.0.entry(key).or_default() += adds;
        }
    }

    /// Adds `delta` to the count under `key`.
    pub(super) fn change(&mut self, key: &[u8], delta: i64) {
        let count = self.0.entry(key.to_vec()).or_default();
        *count = count.saturating_add_signed(delta);
    }

    /// Removes and returns the count under `key`. A count of 0 is as good as absent: the file has no such value.
    pub(super) fn take(&mut self, key: &[u8]) -> Option<u64> {
        self.0.remove(key).filter(|count| *count > 0)
    }

    /// Removes and returns the counts after `from` up to and including `until`; `None`: from the first, up to the last.
    pub(super) fn take_between(
        &mut self,
        from: Option<&[u8]>,
        until: Option<&[u8]>,
    ) -> Vec<(Vec<u8>, u64)> {
        let from = from.map_or(Bound::Unbounded, Bound::Excluded);
        let until = until.map_or(Bound::Unbounded, Bound::Included);
        let keys: Vec<_> =
            self.0.range::<[u8], _>((from, until)).map(|(key, _)| key.clone()).collect();
        keys.into_iter().filter_map(|key| self.take(&key).map(|count| (key, count))).collect()
    }
}
