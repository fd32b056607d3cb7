//! What a write adds: bytes by tenant, and counts.

use crate::error::Result;

use super::super::bytes::{self, Growth, Owner};
use super::super::read::read_number;
use super::super::record::{self, Record};
use super::super::schema::Table;
use super::WriteTx;

impl WriteTx<'_> {
    /// Notes by how many bytes a record grows: from what it was, with its payload, to what it becomes.
    pub(super) fn weigh<R: Record>(
        &mut self,
        key: &[u8],
        before: Option<(&R, &[u8])>,
        after: Option<(&R, &[u8])>,
    ) -> Result<()> {
        let Some((record, _)) = after.or(before) else { return Ok(()) };
        let owner = record.owner(self)?;
        let size = |(_, payload): (&R, &[u8])| bytes::size(key, payload).cast_signed();
        self.growth.add(owner, after.map_or(0, size) - before.map_or(0, size));
        Ok(())
    }

    /// By how many bytes this write changes what each tenant stores; negative where it gives some back.
    pub fn growth(&self) -> &[(Owner, i64)] {
        self.growth.owned()
    }

    /// By how many bytes this write changes what is stored in all, with what no tenant owns.
    pub fn total_growth(&self) -> i64 {
        self.growth.total()
    }

    /// The counts of records of type `R` that this write raised, each by its tenant, and what they are now.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn raised_counts<R: Record>(&self) -> Result<Vec<(Vec<u8>, u64)>> {
        let prefix = record::count_key(R::TABLE, &[]);
        let mut raised = Vec::new();
        for (key, before) in self.undo.first_numbers(Table::Counts, &prefix) {
            let now = read_number(self, Table::Counts, key)?;
            if now > before {
                raised.extend(
                    key.strip_prefix(prefix.as_slice()).map(|tenant| (tenant.to_vec(), now)),
                );
            }
        }
        Ok(raised)
    }

    /// Adds the growth of this write to the sums of its owners. A sum that a damaged file has too small stops
    /// at zero: `check` tells of it.
    ///
    /// Call it before it is decided that the write stays: if a sum cannot be read, none is moved, and the write must
    /// be taken back.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub(in crate::store) fn settle(&mut self) -> Result<()> {
        let mut sums = Vec::with_capacity(self.growth.owned().len());
        for (owner, grown) in self.growth.owned() {
            sums.push((owner.key(), owner.stored_bytes(self)?.saturating_add_signed(*grown)));
        }
        self.growth = Growth::default();
        for (key, sum) in sums {
            self.numbers.set(Table::Counts, &key, sum);
        }
        Ok(())
    }
}
