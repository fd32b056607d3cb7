//! One write within a batch: keeping it, undoing it, ending the batch after it, and what it adds. Also applying the changes
//! of a batch to redb, in the order of their keys, and the rows of the origin that a copy takes.

use std::ops::Bound;

use redb::{Database, ReadableTable};

use crate::base::error::{Error, Result};
use crate::store::changes::batch_diff::BatchDiff;
use crate::store::changes::pending_values::{PriorValue, TableChanges, WriteChanges};
use crate::store::disk::engine::{Bytes, begin, set_value, storage_error};
use crate::store::packed;
use crate::store::record::Record;
use crate::store::record::byte_usage::{Growth, Owner};
use crate::store::values::payload::unseal;
use crate::store::values::position::OriginRow;
use crate::store::values::raw::{number_in, read_number};
use crate::store::values::schema::{Table, count_key};

use super::WriteTx;

/// How many bytes of changes a batch keeps before it applies them to redb, which can write them to the file: 16 MiB.
const MAX_PENDING: usize = 16 * 1024 * 1024;
/// The smallest number of new values for which a look at their gap pays.
const MIN_RUN: usize = 4;
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

    /// Applies all changes of the batch, and returns what it changed. This must be the last step before the commit.
    pub(in crate::store) fn finish(mut self) -> Result<BatchDiff> {
        self.apply()?;
        Ok(self.diff)
    }

    /// Applies the changed values to the transaction. If this fails, the transaction must be aborted.
    pub(in crate::store) fn apply(&mut self) -> Result<()> {
        let mut diff = std::mem::take(&mut self.diff);
        for (table, changes) in self.pending.take() {
            diff.add_table(table);
            let opened = self.table_mut(table)?;
            let mut note = |key: &[u8], after: Option<&[u8]>| diff.add(table, key, after);
            if table.is_packed() {
                packed::apply(opened, table, changes, &mut note)?;
            } else {
                apply(opened, &changes, &mut note)?;
            }
        }
        self.diff = diff;
        Ok(())
    }

    /// Opens every table, and creates those that do not exist.
    pub(in crate::store) fn open_tables(&mut self) -> Result<()> {
        Table::ALL.iter().try_for_each(|table| self.table(*table).map(drop))
    }

    /// Stores a row of the origin as it is, once the batch is applied.
    pub(in crate::store) fn take_row(&mut self, row: OriginRow) -> Result<()> {
        let OriginRow { table, key, sealed } = row;
        if let Some(sealed) = &sealed {
            unseal(table, &key, sealed)?;
        }
        if table.decides_access() {
            self.access_version = None;
        }
        if table.is_packed() {
            // The changes of a batch are entries of blocks, so a block cannot wait among them.
            set_value(self.table_mut(table)?, &key, sealed.as_deref())?;
            self.diff.add_table(table);
            self.diff.add(table, &key, sealed.as_deref());
            return Ok(());
        }
        self.pending.set(table, &key, sealed);
        if self.pending.bytes > MAX_PENDING {
            self.apply()?;
        }
        Ok(())
    }

    /// Applies the rows of other nodes. Collects what changes from now on for the origin.
    pub(in crate::store) fn end_taking(&mut self) -> Result<()> {
        self.apply()?;
        self.diff.end_taking();
        Ok(())
    }

    /// The memory that the changes take which are not applied to redb yet, about, in bytes.
    pub(in crate::store) const fn pending_bytes(&self) -> usize {
        self.pending.bytes
    }
}

/// Calls `note` with each key and the sealed value that it has now.
fn apply(
    opened: &mut redb::Table<'_, Bytes, Bytes>,
    changes: &TableChanges,
    note: &mut impl FnMut(&[u8], Option<&[u8]>),
) -> Result<()> {
    if changes.len() >= MIN_RUN && is_run(opened, changes)? {
        for (key, value) in changes {
            note(key, value.as_deref());
        }
        return append(opened, changes);
    }
    for (key, value) in changes {
        set_value(opened, key, value.as_deref())?;
        note(key, value.as_deref());
    }
    Ok(())
}

/// Whether `changes` only adds values, and all of them between two neighbours in the table.
fn is_run(opened: &redb::Table<'_, Bytes, Bytes>, changes: &TableChanges) -> Result<bool> {
    let (Some((first, _)), Some((last, _))) = (changes.first_key_value(), changes.last_key_value())
    else {
        return Ok(false);
    };
    if changes.values().any(Option::is_none) {
        return Ok(false);
    }
    let between = opened.range(first.as_slice()..=last.as_slice()).map_err(storage_error)?.next();
    Ok(between.transpose().map_err(storage_error)?.is_none())
}

/// Adds a run. redb fills each page with it at once.
fn append(opened: &mut redb::Table<'_, Bytes, Bytes>, run: &TableChanges) -> Result<()> {
    let Some((first, _)) = run.first_key_value() else { return Ok(()) };
    let mut cursor =
        opened.lower_bound_mut(Bound::Included(first.as_slice())).map_err(storage_error)?;
    for (key, value) in run {
        if let Some(sealed) = value {
            cursor.insert_before(key.as_slice(), sealed.as_slice()).map_err(storage_error)?;
        }
    }
    cursor.close().map_err(storage_error)
}
