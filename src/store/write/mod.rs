//! Changing records, and keeping their indexes, counts and sums up to date.

pub(super) mod access;
mod batch;
pub(super) mod cell;
mod image;
mod records;

pub(super) use batch::write_alone;
pub use records::find_used_key;

use std::cell::OnceCell;

use redb::WriteTransaction;

use crate::base::error::{Error, Result};
use crate::store::changes::batch_diff::BatchDiff;
use crate::store::changes::pending_values::{
    Change, PendingValue, PendingValues, PriorValue, WriteChanges, walk_merged,
};
use crate::store::disk::engine::{Bytes, definition, storage_error, walk_range};
use crate::store::packed;
use crate::store::record::Record;
use crate::store::record::byte_usage::Growth;
use crate::store::values::key::Key;
use crate::store::values::payload::{damaged, payload_of, seal};
use crate::store::values::raw::{KeySpan, Raw, Visit, VisitValue};
use crate::store::values::schema::{
    FORMAT, FORMAT_KEY, MARK, MARK_KEY, PerTable, TABLES_KEY, Table,
};

/// A write under way. It reads its own changes; no other read sees them before the commit.
pub struct WriteTx<'t> {
    tables: PerTable<OnceCell<redb::Table<'t, Bytes, Bytes>>>,
    transaction: &'t WriteTransaction,
    /// The values that the batch has changed since it was last applied to redb.
    pending: PendingValues,
    write_changes: WriteChanges,
    growth: Growth,
    diff: BatchDiff,
    /// Whether the batch ends after this write.
    pub(super) ends_batch: bool,
    /// Whether this write is undone even if its rule succeeds.
    pub(super) is_discarded: bool,
    /// The work of this write besides its changes, as a number of records.
    pub(super) other_work: usize,
    /// See [`AccessVersion`](access::AccessVersion).
    pub(super) access_version: Option<u64>,
}

impl<'t> WriteTx<'t> {
    pub(super) fn new(transaction: &'t WriteTransaction) -> Self {
        Self::with(transaction, BatchDiff::default())
    }

    /// Begins a batch that notes in `diff` what it changes.
    pub(super) fn with(transaction: &'t WriteTransaction, diff: BatchDiff) -> Self {
        Self {
            tables: PerTable::new(OnceCell::new),
            transaction,
            pending: PendingValues::default(),
            write_changes: WriteChanges::default(),
            growth: Growth::default(),
            diff,
            ends_batch: false,
            is_discarded: false,
            other_work: 0,
            access_version: None,
        }
    }

    /// Creates every table, so that every snapshot can open it, and notes their names.
    pub(super) fn create_tables(&mut self) -> Result<()> {
        self.open_tables()?;
        let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
        self.put_raw(Table::Meta, TABLES_KEY, names.join("\n").as_bytes());
        Ok(())
    }

    /// Initializes an empty file of this format: its tables, the mark and the format version.
    pub(super) fn begin_file(&mut self) -> Result<()> {
        self.create_tables()?;
        self.put_raw(Table::Meta, MARK_KEY, MARK);
        self.put_raw(Table::Meta, FORMAT_KEY, &FORMAT.encoded());
        Ok(())
    }

    fn table(&self, table: Table) -> Result<&redb::Table<'t, Bytes, Bytes>> {
        let cell = self.tables.slot(table);
        if let Some(opened) = cell.get() {
            return Ok(opened);
        }
        let opened = self.transaction.open_table(definition(table)).map_err(storage_error)?;
        Ok(cell.get_or_init(|| opened))
    }

    fn table_mut(&mut self, table: Table) -> Result<&mut redb::Table<'t, Bytes, Bytes>> {
        self.table(table)?;
        self.tables.slot_mut(table).get_mut().ok_or_else(|| damaged(table, &"not open"))
    }

    /// Writes a value and remembers the previous one. Updates no index and no count, and does not list a [`Change`].
    pub(super) fn put_raw(&mut self, table: Table, key: &[u8], payload: &[u8]) {
        self.set_raw(table, key, Some(seal(table, key, payload)));
    }

    /// Removes a value and remembers it. Updates no index and no count, and does not list a [`Change`].
    pub(super) fn remove_raw(&mut self, table: Table, key: &[u8]) {
        self.set_raw(table, key, None);
    }

    fn set_raw(&mut self, table: Table, key: &[u8], value: PendingValue) {
        if table.decides_access() {
            self.access_version = None;
        }
        let before = self.pending.set(table, key, value);
        self.write_changes.entries.push(PriorValue { table, key: key.to_vec(), before });
    }

    /// Returns the records that this write changed, in the order of their first change.
    pub fn changes(&self) -> &[Change] {
        &self.write_changes.changes
    }

    /// Names a record that gets an entry in the activity log if this write changes it. Changes of other objects then
    /// get none, unless the rule names them too. A rule that changes several objects names those that its request is
    /// about.
    pub fn log_about<R: Record>(&mut self, key: &R::Key) {
        self.write_changes.subjects.push((R::TABLE, key.encoded()));
    }

    /// Returns the tables and keys of the records that were named with [`log_about`](Self::log_about).
    pub fn log_subjects(&self) -> &[(Table, Vec<u8>)] {
        &self.write_changes.subjects
    }

    /// Runs `rule`, undoes all of its changes, and returns its result. The write must have changed nothing before.
    ///
    /// # Errors
    /// The error of `rule`; 500 when the write has already changed something.
    pub fn dry_run<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.wrote_anything() {
            return Err(Error::internal("a dry run would undo what was written before it"));
        }
        let outcome = rule(self);
        self.rollback();
        outcome
    }
}

/// Its own changes over those of the batch, over what is stored.
impl Raw for WriteTx<'_> {
    fn raw_get(&self, table: Table, key: &[u8], visit: &mut VisitValue<'_>) -> Result<()> {
        self.pending_or_stored(self.pending.get(table, key), table, key, visit)
    }

    fn raw_between(&self, table: Table, span: KeySpan<'_>, visit: &mut Visit<'_>) -> Result<()> {
        let (stored, changed) = (self.table(table)?, self.pending.of(table));
        if changed.is_empty() && !table.is_packed() {
            return walk_range(stored, table, span, |_| Ok(()), visit);
        }
        walk_merged(stored, table, changed, span, visit)
    }

    fn as_dyn(&self) -> &dyn Raw {
        self
    }
}

impl WriteTx<'_> {
    /// Calls `visit` with the payload of `pending`, or with what the transaction has under `key` if `pending` is `None`.
    fn pending_or_stored(
        &self,
        pending: Option<&PendingValue>,
        table: Table,
        key: &[u8],
        visit: &mut VisitValue<'_>,
    ) -> Result<()> {
        match pending {
            Some(Some(sealed)) => visit(payload_of(sealed)),
            Some(None) => Ok(()),
            None => packed::get(self.table(table)?, table, key, visit),
        }
    }
}
