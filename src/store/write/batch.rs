//! One write within a batch: keeping it, undoing it, ending the batch after it, and what it adds.

use redb::Database;

use crate::base::error::{Error, Result};
use crate::store::changes::write_changes::{PriorValue, WriteChanges};
use crate::store::disk::engine::{begin, storage_error};
use crate::store::record::Record;
use crate::store::record::byte_usage::{Growth, Owner};
use crate::store::values::raw::{number_in, read_number};
use crate::store::values::schema::{Table, count_key};

use super::WriteTx;

/// How many bytes of changes a batch keeps before it applies them to redb, which can write them to the file: 16 MiB.
pub(super) const MAX_PENDING: usize = 16 * 1024 * 1024;
/// A write is large if it changes more records than this.
const LARGE_WRITE: usize = 100;

/// Runs `rule` in a transaction of its own, and commits it. Returns what `rule` returns.
pub fn write_alone<T, E: From<Error>>(
    database: &Database,
    rule: impl FnOnce(&mut WriteTx<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let transaction = begin(database)?;
    let mut tx = WriteTx::new(&transaction);
    let written = rule(&mut tx)?;
    tx.finish()?;
    transaction.commit().map_err(storage_error)?;
    Ok(written)
}

impl WriteTx<'_> {
    /// Ends the batch after this write, if the write is kept. The commit then leaves exactly the state after
    /// this write. Call this when the response is rendered from that state.
    pub const fn end_batch(&mut self) {
        self.ends_batch = true;
    }

    /// Undoes this write after its rule, even if the rule succeeds. The caller gets the result of the rule.
    pub const fn discard(&mut self) {
        self.is_discarded = true;
    }

    /// Counts this write as a large one, because of work other than its changes.
    pub const fn count_as_large(&mut self) {
        self.other_work = LARGE_WRITE + 1;
    }

    /// Forgets what the previous write of the batch has set.
    pub(in crate::store) const fn begin(&mut self) {
        self.is_discarded = false;
        self.other_work = 0;
    }

    /// Whether this write has changed so many records that a cooldown follows it, also if it is undone.
    pub(in crate::store) const fn is_large(&self) -> bool {
        self.records_changed() > LARGE_WRITE
    }

    /// Returns how many records this write has changed, with its other work.
    pub(in crate::store) const fn records_changed(&self) -> usize {
        self.write_changes.changes.len() + self.other_work
    }

    /// Whether this write has written anything.
    pub(in crate::store) fn wrote_anything(&self) -> bool {
        !self.write_changes.entries.is_empty()
    }

    /// Keeps the changes of this write and begins the next one.
    pub(in crate::store) fn savepoint(&mut self) -> Result<()> {
        self.growth = Growth::default();
        self.write_changes = WriteChanges::default();
        self.ends_batch = false;
        if self.pending.bytes > MAX_PENDING {
            self.apply()?;
        }
        Ok(())
    }

    /// Undoes everything since the last [`savepoint`](Self::savepoint).
    pub(in crate::store) fn rollback(&mut self) {
        self.growth = Growth::default();
        self.ends_batch = false;
        // The newest first.
        for entry in std::mem::take(&mut self.write_changes).entries.into_iter().rev() {
            self.pending.restore(entry.table, entry.key, entry.before);
        }
    }
}

impl WriteTx<'_> {
    /// By how many bytes this write changes what each tenant stores; negative if the tenant stores less.
    pub fn growth(&self) -> &[(Owner, i64)] {
        &self.growth.by_owner
    }

    /// By how many bytes this write changes all records, including records without a tenant.
    pub fn total_growth(&self) -> i64 {
        self.growth.total
    }

    /// Returns the counts of records of type `R` that this write raised: each tenant's key and the new count.
    pub fn raised_counts<R: Record>(&self) -> Result<Vec<(Vec<u8>, u64)>> {
        self.raised_counts_of(R::TABLE)
    }

    fn raised_counts_of(&self, table: Table) -> Result<Vec<(Vec<u8>, u64)>> {
        let prefix = count_key(table, &[]);
        let mut raised = Vec::new();
        for PriorValue { key, before, .. } in
            self.write_changes.first_entries(Table::Counts, &prefix)
        {
            let mut number = 0;
            self.pending_or_stored(before.as_ref(), Table::Counts, key, &mut |payload| {
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
