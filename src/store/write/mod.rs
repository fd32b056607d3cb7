//! Changing records, and keeping their indexes, counts and sums up to date.

pub(super) mod access;
mod apply;
mod batch;
pub(super) mod cell;
mod image;

pub(super) use apply::FinishedBatch;
pub(super) use batch::write_alone;

use std::cell::OnceCell;

use redb::WriteTransaction;

use crate::base::error::{Error, Result};
use crate::store::changes::batch_diff::BatchDiff;
use crate::store::changes::hot_values::HotValues;
use crate::store::changes::pending_values::{PendingValue, PendingValues, walk_merged};
use crate::store::changes::write_changes::{Change, PriorValue, WriteChanges};
use crate::store::disk::engine::{Bytes, definition, get_value, storage_error, walk_range};
use crate::store::packed;
use crate::store::record::byte_usage::Growth;
use crate::store::record::{self, Index, IndexForm, Record, Row, Tx, version_under};
use crate::store::values::key::Key;
use crate::store::values::payload::{damaged, has_same_content, payload_of, seal, version_of};
use crate::store::values::raw::{KeySpan, Order, Raw, Visit, VisitValue, Window};
use crate::store::values::schema::{
    FORMAT, FORMAT_KEY, MARK, MARK_KEY, PerTable, TABLES_KEY, Table,
};

use image::Image;

/// A write under way. It reads its own changes; no other read sees them before the commit.
pub struct WriteTx<'t> {
    tables: PerTable<OnceCell<redb::Table<'t, Bytes, Bytes>>>,
    transaction: &'t WriteTransaction,
    /// The values that the batch has changed since it was last applied to redb.
    pending: PendingValues,
    /// Stored values that earlier writes read.
    hot: HotValues,
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
        Self::with(transaction, HotValues::default(), BatchDiff::default())
    }

    /// Begins a batch that knows these stored values and notes in `diff` what it changes.
    pub(super) fn with(transaction: &'t WriteTransaction, hot: HotValues, diff: BatchDiff) -> Self {
        Self {
            tables: PerTable::new(OnceCell::new),
            transaction,
            pending: PendingValues::default(),
            hot,
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

    /// Creates `record`, or replaces the record under its key. The version of the record increases. If an equal record
    /// is already stored, nothing changes, not even the version.
    ///
    /// # Errors
    /// 500 when a unique index already has another record under the same key. Rules must check this first and return
    /// an error of their own.
    pub fn put<R: Record>(&mut self, record: &R) -> Result<()> {
        let projected = record.projected();
        let record = projected.as_ref().unwrap_or(record);
        let key = record.key().encoded();
        let before = self.get_raw(R::TABLE, &key)?;
        let version = before.as_deref().map_or(Ok(0), |before| version_of(R::TABLE, before))?;
        let payload = record::payload_of(version + 1, record)?;
        if let Some(before) = &before
            && has_same_content(R::TABLE, before, &payload)?
        {
            return Ok(());
        }
        let payload = match self.next_version::<R>(version)? {
            next if next == version + 1 => payload,
            next => record::payload_of(next, record)?,
        };
        let old = before.as_deref().map(Row::<R>::parse).transpose()?;
        self.replace(key, before, old.as_ref(), record, payload)
    }

    /// Returns the version that follows `version`; 0 stands for no record.
    fn next_version<R: Record>(&mut self, version: u64) -> Result<u64> {
        if R::REUSES_KEYS { self.next_in_sequence(R::TABLE) } else { Ok(version + 1) }
    }

    /// Increases the version of the record under `key` and changes nothing else, because a dependent of the record
    /// changed.
    ///
    /// # Errors
    /// 404 `Not found.` when the record does not exist.
    pub fn bump_version<R: Record>(&mut self, key: &R::Key) -> Result<()> {
        let key = key.encoded();
        let before = self.get_raw(R::TABLE, &key)?.ok_or_else(Error::not_found)?;
        let version = self.next_version::<R>(version_of(R::TABLE, &before)?)?;
        let record = Row::<R>::parse(&before)?;
        let payload = record::payload_of(version, &record)?;
        self.replace(key, Some(before), Some(&record), &record, payload)
    }

    /// Replaces `old`, whose payload was `before`, with `record`, whose key and payload are given.
    pub(super) fn replace<R: Record>(
        &mut self,
        key: Vec<u8>,
        before: Option<Vec<u8>>,
        old: Option<&R>,
        record: &R,
        payload: Vec<u8>,
    ) -> Result<()> {
        let owner = record.owner(self)?;
        let old =
            old.zip(before).map(|(old, payload)| Image::of(self, old, payload)).transpose()?;
        let new = Image::of(self, record, payload)?;
        self.replace_image(R::TABLE, key, owner, old, Some(new))
    }

    /// Deletes the record under `key` and returns it, if it exists.
    pub fn remove<R: Record>(&mut self, key: &R::Key) -> Result<Option<R>> {
        let key = key.encoded();
        let Some(before) = self.get_raw(R::TABLE, &key)? else {
            return Ok(None);
        };
        let old = Row::<R>::parse(&before)?;
        let owner = old.owner(self)?;
        let image = Image::of(self, &old, before)?;
        self.replace_image(R::TABLE, key, owner, Some(image), None)?;
        Ok(Some(old))
    }

    /// Deletes the first `limit` records whose primary key begins with `prefix`, and returns how many it deleted.
    pub fn remove_some<R: Record>(&mut self, prefix: &impl Key, limit: usize) -> Result<usize> {
        let mut keys = Vec::new();
        let window = Window { offset: 0, limit, order: Order::Ascending };
        self.scan::<R, _>(prefix, window, |row| {
            keys.push(row.into_record()?.key());
            Ok(())
        })?;
        for key in &keys {
            self.remove::<R>(key)?;
        }
        Ok(keys.len())
    }

    /// Deletes the first `limit` records whose key in `index` begins with `prefix`, and returns how many it deleted.
    pub fn remove_indexed<R: Record, K: Key>(
        &mut self,
        index: &Index<R, K>,
        prefix: &impl Key,
        limit: usize,
    ) -> Result<usize> {
        let keys = self.keys(index, prefix, limit)?;
        for key in &keys {
            self.remove::<R>(key)?;
        }
        Ok(keys.len())
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

    /// Returns the version that the record under `key` had before this write, or 0 if it did not exist.
    pub fn version_before<R: Record>(&self, key: &R::Key) -> Result<u64> {
        self.version_under_before(R::TABLE, &key.encoded())
    }

    fn version_under_before(&self, table: Table, key: &[u8]) -> Result<u64> {
        let known = |change: &&Change| change.table == table && change.key == key;
        match self.changes().iter().find(known) {
            Some(Change { before: None, .. }) => Ok(0),
            Some(Change { before: Some(before), .. }) => version_of(table, before),
            None => version_under(self, table, key),
        }
    }
}

/// Returns the table in which another record has the key of `record`, or one of its unique keys.
pub fn find_used_key<R: Record>(tx: &impl Tx, record: &R) -> Result<Option<Table>> {
    if tx.get_raw(R::TABLE, &record.key().encoded())?.is_some() {
        return Ok(Some(R::TABLE));
    }
    for index in R::INDEXES.iter().filter(|index| index.form() == IndexForm::Unique) {
        if let Some(entry) = index.entry(record)
            && tx.get_raw(index.table(), &entry)?.is_some()
        {
            return Ok(Some(index.table()));
        }
    }
    Ok(None)
}

impl WriteTx<'_> {
    /// Adds a record at the version that it has in another installation. If this cell created its number, the sequence
    /// assigns the number to no other record.
    ///
    /// # Errors
    /// 500 when a key of the record is [taken](find_used_key).
    pub fn adopt<R: Record>(
        &mut self,
        record: &R,
        version: u64,
        number: Option<u64>,
    ) -> Result<()> {
        let projected = record.projected();
        let record = projected.as_ref().unwrap_or(record);
        if R::REUSES_KEYS {
            self.reserve_number(R::TABLE, version)?;
        }
        if let Some(number) = number {
            self.reserve_number(R::TABLE, number)?;
        }
        let payload = record::payload_of(version, record)?;
        self.replace(record.key().encoded(), None, None, record, payload)
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
            None => self.stored(table, key, visit),
        }
    }

    /// Calls `visit` with the payload that the transaction has under `key`.
    fn stored(&self, table: Table, key: &[u8], visit: &mut VisitValue<'_>) -> Result<()> {
        if table.is_packed() {
            return packed::get(self.table(table)?, table, key, visit);
        }
        if let Some(known) = self.hot.get(table, key) {
            return known.map_or(Ok(()), |payload| visit(&payload));
        }
        let mut exists = false;
        get_value(self.table(table)?, table, key, &mut |payload| {
            exists = true;
            self.hot.keep(table, key, Some(payload));
            visit(payload)
        })?;
        if !exists {
            self.hot.keep(table, key, None);
        }
        Ok(())
    }
}
