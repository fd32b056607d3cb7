//! What a write adds: bytes of each tenant, and counts.

use crate::error::Result;

use super::super::byte_usage::{self, Growth, Owner};
use super::super::raw::read_number;
use super::super::record::Record;
use super::super::schema::{Table, count_key};
use super::WriteTx;

impl WriteTx<'_> {
    /// Adds the growth of one record, from its old payload to its new one, to the growth of the write.
    pub(super) fn note_growth<R: Record>(
        &mut self,
        key: &[u8],
        before: Option<(&R, &[u8])>,
        after: Option<(&R, &[u8])>,
    ) -> Result<()> {
        let Some((record, _)) = after.or(before) else { return Ok(()) };
        let owner = record.owner(self)?;
        let size = |(_, payload): (&R, &[u8])| byte_usage::size(key, payload).cast_signed();
        let bytes = after.map_or(0, size) - before.map_or(0, size);
        self.growth.add(owner, bytes);
        if let Some(owner) = owner {
            self.noted.note_count(&owner.key(), bytes);
        }
        Ok(())
    }

    /// By how many bytes this write changes what each tenant stores; negative if the tenant stores less.
    pub fn growth(&self) -> &[(Owner, i64)] {
        self.growth.by_owner()
    }

    /// By how many bytes this write changes all records, including records without a tenant.
    pub fn total_growth(&self) -> i64 {
        self.growth.total()
    }

    /// Returns the counts of records of type `R` that this write raised: each tenant's key and the new count.
    pub fn raised_counts<R: Record>(&self) -> Result<Vec<(Vec<u8>, u64)>> {
        let prefix = count_key(R::TABLE, &[]);
        let mut raised = Vec::new();
        for (key, before) in self.undo_log.first_numbers(Table::Counts, &prefix) {
            let now = read_number(self, Table::Counts, key)?;
            if now > before {
                raised.extend(
                    key.strip_prefix(prefix.as_slice()).map(|tenant| (tenant.to_vec(), now)),
                );
            }
        }
        Ok(raised)
    }

    /// Adds the growth of this write to the sums of its owners. A sum never becomes negative: if a damaged
    /// file has a sum that is too small, it stays at 0 and `check` reports it.
    ///
    /// Call this before keeping the write. If a sum cannot be read, no sum is changed, and the caller must
    /// undo the write.
    pub(in crate::store) fn settle(&mut self) -> Result<()> {
        let mut sums = Vec::with_capacity(self.growth.by_owner().len());
        for (owner, grown) in self.growth.by_owner() {
            sums.push((owner.key(), owner.stored_bytes(self)?.saturating_add_signed(*grown)));
        }
        self.growth = Growth::default();
        for (key, sum) in sums {
            self.numbers.set(Table::Counts, &key, sum);
        }
        Ok(())
    }
}
