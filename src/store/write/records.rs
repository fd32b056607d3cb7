//! Creating, replacing and deleting records.
//!
//! The methods take types of records. What they do is compiled once, with [erased](crate::store::record::erased) types.

use crate::base::error::{Error, Result};
use crate::store::changes::pending_values::Change;
use crate::store::record::erased::{ErasedRecord, ErasedType, IndexEntry};
use crate::store::record::{Index, IndexForm, Record, Row, Tx, version_under};
use crate::store::values::key::Key;
use crate::store::values::payload::{has_same_content, version_of};
use crate::store::values::raw::{Order, Raw, continue_if};
use crate::store::values::schema::Table;

use super::WriteTx;
use super::image::Image;

impl WriteTx<'_> {
    /// Creates `record`, or replaces the record under its key. The version of the record increases. If an equal record
    /// is already stored, nothing changes, not even the version.
    ///
    /// # Errors
    /// 500 when a unique index already has another record under the same key. Rules must check this first and return
    /// an error of their own.
    pub fn put<R: Record>(&mut self, record: &R) -> Result<()> {
        let projected = record.projected();
        self.put_erased(ErasedType::of::<R>(), projected.as_ref().unwrap_or(record))
    }

    fn put_erased(&mut self, of: ErasedType, record: &dyn ErasedRecord) -> Result<()> {
        let key = record.encoded_key();
        let before = self.get_raw(of.table, &key)?;
        let version = before.as_deref().map_or(Ok(0), |before| version_of(of.table, before))?;
        let payload = record.payload(version + 1)?;
        if let Some(before) = &before
            && has_same_content(of.table, before, &payload)?
        {
            return Ok(());
        }
        let payload = match self.next_version(of, version)? {
            next if next == version + 1 => payload,
            next => record.payload(next)?,
        };
        let old = before.as_deref().map(of.parse).transpose()?;
        self.replace(of.table, key, old.as_deref().zip(before), record, payload)
    }

    /// Returns the version that follows `version`; 0 stands for no record.
    fn next_version(&mut self, of: ErasedType, version: u64) -> Result<u64> {
        if of.reuses_keys { self.next_in_sequence(of.table) } else { Ok(version + 1) }
    }

    /// Increases the version of the record under `key` and changes nothing else, because a dependent of the record
    /// changed.
    ///
    /// # Errors
    /// 404 `Not found.` when the record does not exist.
    pub fn bump_version<R: Record>(&mut self, key: &R::Key) -> Result<()> {
        self.bump_version_erased(ErasedType::of::<R>(), key.encoded())
    }

    fn bump_version_erased(&mut self, of: ErasedType, key: Vec<u8>) -> Result<()> {
        let before = self.get_raw(of.table, &key)?.ok_or_else(Error::not_found)?;
        let version = self.next_version(of, version_of(of.table, &before)?)?;
        let record = (of.parse)(&before)?;
        let payload = record.payload(version)?;
        self.replace(of.table, key, Some((&*record, before)), &*record, payload)
    }

    /// Replaces a record and its payload with `record`, whose key and payload are given.
    pub(in crate::store) fn replace(
        &mut self,
        table: Table,
        key: Vec<u8>,
        old: Option<(&dyn ErasedRecord, Vec<u8>)>,
        record: &dyn ErasedRecord,
        payload: Vec<u8>,
    ) -> Result<()> {
        let owner = record.owner_in(self)?;
        let old = old.map(|(old, payload)| Image::of(self, table, old, payload)).transpose()?;
        let new = Image::of(self, table, record, payload)?;
        self.replace_image(table, key, owner, old, Some(new))
    }

    /// Deletes the record under `key` and returns it, if it exists.
    pub fn remove<R: Record>(&mut self, key: &R::Key) -> Result<Option<R>> {
        let key = key.encoded();
        let Some(before) = self.get_raw(R::TABLE, &key)? else {
            return Ok(None);
        };
        let old = Row::<R>::parse(&before)?;
        self.remove_stored(R::TABLE, key, &old, before)?;
        Ok(Some(old))
    }

    /// Deletes the record under `key`, if it exists.
    fn remove_erased(&mut self, of: ErasedType, key: Vec<u8>) -> Result<()> {
        let Some(before) = self.get_raw(of.table, &key)? else {
            return Ok(());
        };
        let old = (of.parse)(&before)?;
        self.remove_stored(of.table, key, &*old, before)
    }

    fn remove_stored(
        &mut self,
        table: Table,
        key: Vec<u8>,
        old: &dyn ErasedRecord,
        before: Vec<u8>,
    ) -> Result<()> {
        let owner = old.owner_in(self)?;
        let image = Image::of(self, table, old, before)?;
        self.replace_image(table, key, owner, Some(image), None)
    }

    /// Deletes the first `limit` records whose primary key begins with `prefix`, and returns how many it deleted.
    pub fn remove_some<R: Record>(&mut self, prefix: &impl Key, limit: usize) -> Result<usize> {
        self.remove_some_erased(ErasedType::of::<R>(), &prefix.encoded(), limit)
    }

    fn remove_some_erased(&mut self, of: ErasedType, prefix: &[u8], limit: usize) -> Result<usize> {
        if limit == 0 {
            return Ok(0);
        }
        let mut keys = Vec::new();
        self.raw_walk(of.table, prefix, 0, Order::Ascending, &mut |key, _| {
            keys.push(key.to_vec());
            Ok(continue_if(keys.len() < limit))
        })?;
        let removed = keys.len();
        keys.into_iter().try_for_each(|key| self.remove_erased(of, key))?;
        Ok(removed)
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
            self.remove_erased(ErasedType::of::<R>(), key.encoded())?;
        }
        Ok(keys.len())
    }

    /// Returns the version that the record under `key` had before this write, or 0 if it did not exist.
    pub fn version_before<R: Record>(&self, key: &R::Key) -> Result<u64> {
        let (table, key) = (R::TABLE, key.encoded());
        let known = |change: &&Change| change.table == table && change.key == key;
        match self.changes().iter().find(known) {
            Some(Change { before: None, .. }) => Ok(0),
            Some(Change { before: Some(before), .. }) => version_of(table, before),
            None => version_under(self, table, &key),
        }
    }

    /// Adds a record at the version that it has in another installation. If this cell created its number, the sequence
    /// assigns the number to no other record. Adds nothing if a key of the record is [taken](find_used_key), and returns the
    /// table of the key.
    pub fn adopt<R: Record>(
        &mut self,
        record: &R,
        version: u64,
        number: Option<u64>,
    ) -> Result<Option<Table>> {
        let projected = record.projected();
        let record = projected.as_ref().unwrap_or(record);
        self.adopt_erased(ErasedType::of::<R>(), record, version, number)
    }

    fn adopt_erased(
        &mut self,
        of: ErasedType,
        record: &dyn ErasedRecord,
        version: u64,
        number: Option<u64>,
    ) -> Result<Option<Table>> {
        let taken = used_key(self, of.table, record)?;
        if taken.is_some() {
            return Ok(taken);
        }
        if of.reuses_keys {
            self.reserve_number(of.table, version)?;
        }
        if let Some(number) = number {
            self.reserve_number(of.table, number)?;
        }
        let payload = record.payload(version)?;
        self.replace(of.table, record.encoded_key(), None, record, payload)?;
        Ok(None)
    }
}

/// Returns the table in which another record has the key of `record`, or one of its unique keys.
pub fn find_used_key<R: Record>(tx: &impl Tx, record: &R) -> Result<Option<Table>> {
    used_key(tx.as_dyn(), R::TABLE, record)
}

fn used_key(tx: &dyn Raw, table: Table, record: &dyn ErasedRecord) -> Result<Option<Table>> {
    if tx.get_raw(table, &record.encoded_key())?.is_some() {
        return Ok(Some(table));
    }
    for IndexEntry { table, form, key } in record.entries() {
        if let (IndexForm::Unique, Some(entry)) = (form, key)
            && tx.get_raw(table, &entry)?.is_some()
        {
            return Ok(Some(table));
        }
    }
    Ok(None)
}
