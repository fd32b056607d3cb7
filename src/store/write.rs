//! Changing records, with their indexes and counts kept in step.

mod batch;
mod measure;

use std::cell::OnceCell;

use redb::WriteTransaction;

use crate::error::{Error, Result};

use super::bytes::Growth;
use super::engine::{Bytes, definition, get_from, storage_error, walk_from};
use super::key::Key;
use super::numbers::Numbers;
use super::per_table::PerTable;
use super::read::{Raw, Tx, Visit, read_number};
use super::record::{self, Form, Indexed, Record, Row, damaged, entry_payload, seal};
use super::schema::{FORMAT, FORMAT_KEY, MARK, MARK_KEY, Table};
use super::undo::{Before, Change, Undo};
use super::window::{Order, Window};

/// A write under way. It sees what it wrote; nobody else does before it is committed.
pub struct WriteTx<'t> {
    tables: PerTable<OnceCell<redb::Table<'t, Bytes, Bytes>>>,
    transaction: &'t WriteTransaction,
    undo: Undo,
    numbers: Numbers,
    growth: Growth,
    /// Whether redb failed or panicked halfway through a change: nobody knows what it left.
    torn: bool,
    /// Whether the batch ends with the write under way.
    ends_batch: bool,
    /// How many records the write under way may change.
    most_records: usize,
}

impl Raw for WriteTx<'_> {
    fn raw_get(
        &self,
        table: Table,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match self.numbers.get(table, key) {
            None => get_from(self.table(table)?, table, key, visit),
            Some(0) => Ok(()),
            Some(number) => visit(&number.encoded()),
        }
    }

    /// Sees no number that is kept aside: nobody walks counts or sequences inside a write.
    fn raw_between(
        &self,
        table: Table,
        span: (&[u8], Option<&[u8]>),
        skip: usize,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        walk_from(self.table(table)?, table, span, skip, order, |_| Ok(()), visit)
    }
}

impl<'t> WriteTx<'t> {
    pub(super) fn new(transaction: &'t WriteTransaction) -> Self {
        Self {
            tables: PerTable::new(OnceCell::new),
            transaction,
            undo: Undo::default(),
            numbers: Numbers::default(),
            growth: Growth::default(),
            torn: false,
            ends_batch: false,
            most_records: usize::MAX,
        }
    }

    /// Creates every table, so that snapshots find them all.
    pub(super) fn create_tables(&self) -> Result<()> {
        Table::ALL.iter().try_for_each(|table| self.table(*table).map(drop))
    }

    /// Makes a file of this form: its tables, the mark and the version.
    pub(super) fn begin_file(&mut self) -> Result<()> {
        self.create_tables()?;
        self.put_plain(Table::Meta, MARK_KEY, MARK)?;
        self.put_plain(Table::Meta, FORMAT_KEY, &FORMAT.encoded())
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

    /// Adds `record`, or puts it in the place of the one under its key. Its version becomes a later one. Putting what already stands there changes nothing, not even the version.
    ///
    /// # Errors
    /// 500 when a unique index already leads elsewhere: a rule checks that first, in its own words.
    pub fn put<R: Record>(&mut self, record: &R) -> Result<()> {
        let key = record.key().encoded();
        let before = self.plain(R::TABLE, &key)?;
        let old = before.as_deref().map(Row::<R>::read).transpose()?;
        let version = old.as_ref().map_or(0, |row| row.version);
        let payload = record::payload(version + 1, record)?;
        if before.as_deref().is_some_and(|before| record::differ_in_version_only(before, &payload))
        {
            return Ok(());
        }
        let payload = match self.next_version::<R>(version)? {
            next if next == version + 1 => payload,
            next => record::payload(next, record)?,
        };
        let old = old.map(Row::into_record).transpose()?;
        self.replace(key, before, old.as_ref(), record, payload)
    }

    /// The version after this one; 0 is that of no record.
    fn next_version<R: Record>(&mut self, version: u64) -> Result<u64> {
        if R::KEYS_COME_BACK { self.next_number(R::TABLE) } else { Ok(version + 1) }
    }

    /// Counts a change of what hangs on the record under `key`: its version becomes a later one, and nothing
    /// else of it changes.
    ///
    /// # Errors
    /// 404 `Not found.` when there is none.
    pub fn touch<R: Record>(&mut self, key: &R::Key) -> Result<()> {
        let key = key.encoded();
        let before = self.plain(R::TABLE, &key)?.ok_or_else(Error::not_found)?;
        let row = Row::<R>::read(&before)?;
        let version = self.next_version::<R>(row.version)?;
        let record = row.into_record()?;
        let payload = record::payload(version, &record)?;
        self.replace(key, Some(before), Some(&record), &record, payload)
    }

    /// Puts `record`, whose key and payload these are, in the place of `old`, whose payload was `before`.
    pub(super) fn replace<R: Record>(
        &mut self,
        key: Vec<u8>,
        before: Option<Vec<u8>>,
        old: Option<&R>,
        record: &R,
        payload: Vec<u8>,
    ) -> Result<()> {
        self.reindex(&key, old, Some((record, &payload)))?;
        self.weigh(&key, old.zip(before.as_deref()), Some((record, payload.as_slice())))?;
        self.resum::<R>(before.as_deref(), Some(&payload))?;
        self.put_plain(R::TABLE, &key, &payload)?;
        self.changed(Change { table: R::TABLE, key, before, after: Some(payload) })
    }

    /// Removes the record under `key`, if there is one, and answers it.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read or written.
    pub fn remove<R: Record>(&mut self, key: &R::Key) -> Result<Option<R>> {
        let key = key.encoded();
        let Some(before) = self.plain(R::TABLE, &key)? else {
            return Ok(None);
        };
        let old = Row::<R>::read(&before)?.into_record()?;
        self.weigh(&key, Some((&old, before.as_slice())), None)?;
        self.reindex(&key, Some(&old), None)?;
        self.resum::<R>(Some(&before), None)?;
        self.remove_plain(R::TABLE, &key)?;
        self.changed(Change { table: R::TABLE, key, before: Some(before), after: None })?;
        Ok(Some(old))
    }

    /// Removes the first `limit` records whose primary key begins with `prefix`; answers how many.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read or written.
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

    /// The next number of the sequence that numbers `table`, from 1.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read or written.
    pub fn next_number(&mut self, table: Table) -> Result<u64> {
        let key = table.name().to_owned().encoded();
        let number = read_number(self, Table::Sequences, &key)? + 1;
        self.set_number(Table::Sequences, &key, number)?;
        Ok(number)
    }

    pub(super) fn set_number(&mut self, table: Table, key: &[u8], number: u64) -> Result<()> {
        let before = read_number(self, table, key)?;
        self.numbers.set(table, key, number);
        self.undo.wrote(table, key, Before::Number(before));
        Ok(())
    }

    /// Writes a value and notes what stood there; keeps no index, no count and no change.
    pub(super) fn put_plain(&mut self, table: Table, key: &[u8], payload: &[u8]) -> Result<()> {
        let before = self.swap(table, key, Some(&seal(table, key, payload)))?;
        self.undo.wrote(table, key, Before::Sealed(before));
        Ok(())
    }

    /// Removes a value and notes it; keeps no index, no count and no change.
    pub(super) fn remove_plain(&mut self, table: Table, key: &[u8]) -> Result<()> {
        let before = self.swap(table, key, None)?;
        if before.is_some() {
            self.undo.wrote(table, key, Before::Sealed(before));
        }
        Ok(())
    }

    /// Puts a sealed value under `key`, or nothing; answers what was there.
    fn swap(&mut self, table: Table, key: &[u8], sealed: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        self.table(table)?;
        self.torn = true;
        let opened = self.table_mut(table)?;
        let before = match sealed {
            Some(sealed) => opened.insert(key, sealed),
            None => opened.remove(key),
        };
        let before = before.map_err(storage_error)?.map(|before| before.value().to_vec());
        self.torn = false;
        Ok(before)
    }

    /// The records changed since this write began, in the order of their first change.
    pub fn changes(&self) -> &[Change] {
        self.undo.changes()
    }

    /// Runs `rule` and takes back all that it wrote, whatever it answers: to see what it would. For a write that
    /// has written nothing before.
    ///
    /// # Errors
    /// What `rule` answers; 500 where something was written before.
    pub fn rehearse<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.wrote_anything() {
            return Err(Error::internal("a rehearsal would take back what was written before"));
        }
        let outcome = rule(self);
        self.take_back()?;
        outcome
    }

    /// The version at which the record under `key` stood before this write: 0 where there was none.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn version_before<R: Record>(&self, key: &R::Key) -> Result<u64> {
        let encoded = key.encoded();
        let known = |change: &&Change| change.table == R::TABLE && change.key == encoded;
        match self.changes().iter().find(known) {
            Some(Change { before: None, .. }) => Ok(0),
            Some(Change { before: Some(before), .. }) => Ok(Row::<R>::read(before)?.version),
            None => self.version::<R>(key),
        }
    }

    /// Looks at every unique index before it writes to any, so that what is refused changed nothing.
    fn reindex<R: Record>(
        &mut self,
        key: &[u8],
        old: Option<&R>,
        new: Option<(&R, &[u8])>,
    ) -> Result<()> {
        let mut due = Vec::with_capacity(R::INDEXES.len());
        for index in R::INDEXES {
            let before = old.and_then(|record| index.entry(record));
            let after = new.and_then(|(record, _)| index.entry(record));
            let moved = before != after;
            if let Some(entry) = after.as_ref().filter(|_| moved) {
                self.require_free(*index, entry)?;
            }
            if moved || index.form() == Form::Covering {
                due.push((index, before.filter(|_| moved), after));
            }
        }
        for (index, before, after) in due {
            if let Some(entry) = before {
                self.remove_plain(index.table(), &entry)?;
            }
            if let (Some(entry), Some((_, payload))) = (after, new) {
                let payload = entry_payload(index.form(), key, payload);
                self.put_plain(index.table(), &entry, &payload)?;
            }
        }
        let new = new.map(|(record, _)| record);
        for count in R::COUNTS {
            let before = old.and_then(|record| count.key(record));
            let after = new.and_then(|record| count.key(record));
            if before != after {
                if let Some(count) = before {
                    self.count_down(&count)?;
                }
                if let Some(count) = after {
                    self.count_up(&count)?;
                }
            }
        }
        Ok(())
    }

    /// A rule looks before it puts; what reaches this is a defect, and must not overwrite.
    fn require_free<R: Record>(&self, index: &dyn Indexed<R>, entry: &[u8]) -> Result<()> {
        if index.form() == Form::Unique && self.plain(index.table(), entry)?.is_some() {
            let table = index.table().name();
            return Err(Error::internal(format_args!("{table}: a second record under one key")));
        }
        Ok(())
    }

    /// Writes a count or a sum anew.
    pub(super) fn put_number(&mut self, key: &[u8], number: u64) -> Result<()> {
        self.set_number(Table::Counts, key, number)
    }

    /// Counts one more under the key of a count.
    pub(super) fn count_up(&mut self, key: &[u8]) -> Result<()> {
        let number = read_number(self, Table::Counts, key)? + 1;
        self.set_number(Table::Counts, key, number)
    }

    fn count_down(&mut self, key: &[u8]) -> Result<()> {
        match read_number(self, Table::Counts, key)?.checked_sub(1) {
            None => Err(damaged(Table::Counts, &"a record is there and was never counted")),
            Some(number) => self.set_number(Table::Counts, key, number),
        }
    }

    /// How many bytes of the file are in use.
    pub(super) fn allocated(&self) -> Result<u64> {
        let stats = self.transaction.stats().map_err(storage_error)?;
        Ok(stats.allocated_pages().saturating_mul(stats.page_size() as u64))
    }

    /// Whether anything was written since the write began.
    pub(super) fn wrote_anything(&self) -> bool {
        self.undo.wrote_anything()
    }

    /// Writes the numbers that were kept aside: the last step before the commit.
    pub(super) fn finish(mut self) -> Result<()> {
        self.settle()?;
        for (table, key, number) in self.numbers.take() {
            let sealed = (number > 0).then(|| seal(table, &key, &number.encoded()));
            self.swap(table, &key, sealed.as_deref())?;
        }
        Ok(())
    }

    fn require_whole(&self) -> Result<()> {
        if self.torn {
            return Err(Error::internal("redb failed halfway through a change"));
        }
        Ok(())
    }
}
