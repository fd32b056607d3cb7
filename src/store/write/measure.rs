//! What a write adds: bytes of each tenant, and counts.

use crate::error::Result;
use crate::store::changes::write_changes::PriorValue;
use crate::store::record::Record;
use crate::store::record::byte_usage::Owner;
use crate::store::values::raw::{number_in, read_number};
use crate::store::values::schema::{Table, count_key};

use super::WriteTx;

impl WriteTx<'_> {
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
        for PriorValue { key, before, .. } in
            self.write_changes.first_entries(Table::Counts, &prefix)
        {
            let mut number = 0;
            self.pending_or_stored(before.as_ref(), (Table::Counts, key), &mut |payload| {
                number = number_in(Table::Counts, payload)?;
                Ok(())
            })?;
            let now = read_number(self, Table::Counts, key)?;
            if now > number {
                raised.extend(
                    key.strip_prefix(prefix.as_slice()).map(|tenant| (tenant.to_vec(), now)),
                );
            }
        }
        Ok(raised)
    }
}
