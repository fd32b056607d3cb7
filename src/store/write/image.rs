//! What the store keeps beside a record: its entries in indexes, its counts, its sums, and the bytes of its owner.

use crate::base::error::{Error, Result};
use crate::store::changes::pending_values::Change;
use crate::store::record::byte_usage::Owner;
use crate::store::record::erased::{ErasedRecord, IndexEntry};
use crate::store::record::{IndexForm, Record, Sum, Summand, Tx, entry_payload};
use crate::store::values::key::Key;
use crate::store::values::payload::damaged;
use crate::store::values::raw::read_number;
use crate::store::values::schema::Table;

use super::WriteTx;

/// A record before or after a write, and what follows from it.
pub(super) struct Image {
    payload: Vec<u8>,
    /// One for each index of the type.
    entries: Vec<IndexEntry>,
    /// What the record adds, one for each count and each sum of the type.
    sums: Vec<Option<Summand>>,
}

impl Image {
    /// Returns what follows from a record of `table`, which has this payload.
    pub(super) fn of(
        tx: &WriteTx<'_>,
        table: Table,
        record: &dyn ErasedRecord,
        payload: Vec<u8>,
    ) -> Result<Self> {
        Ok(Self {
            entries: record.entries(),
            sums: record.summands(tx, table, &payload).into_iter().collect::<Result<_>>()?,
            payload,
        })
    }
}

fn entry_key(entry: Option<&IndexEntry>) -> Option<&[u8]> {
    entry.and_then(|entry| entry.key.as_deref())
}

/// Pairs what follows from a record before and after a write.
fn paired<'i, T: 'i>(
    old: Option<&'i Image>,
    new: Option<&'i Image>,
    part: fn(&Image) -> &[T],
) -> impl Iterator<Item = (Option<&'i T>, Option<&'i T>)> {
    let (old, new) = (old.map_or(&[][..], part), new.map_or(&[][..], part));
    (0..old.len().max(new.len())).map(move |at| (old.get(at), new.get(at)))
}

impl WriteTx<'_> {
    /// Replaces the record in a table under a key, or creates or deletes it, with all that follows from it.
    pub(super) fn replace_image(
        &mut self,
        table: Table,
        key: Vec<u8>,
        owner: Option<Owner>,
        old: Option<Image>,
        new: Option<Image>,
    ) -> Result<()> {
        self.reindex(&key, old.as_ref(), new.as_ref())?;
        self.resum(old.as_ref(), new.as_ref())?;
        let (before, after) = (old.map(|old| old.payload), new.map(|new| new.payload));
        let change = Change { table, key, before, after };
        self.note_growth(owner, change.growth())?;
        match &change.after {
            Some(payload) => self.put_raw(table, &change.key, payload),
            None => self.remove_raw(table, &change.key),
        }
        self.write_changes.note_change(change);
        Ok(())
    }

    /// Checks every unique index before it changes any, so that a refused record changes nothing.
    fn reindex(&mut self, key: &[u8], old: Option<&Image>, new: Option<&Image>) -> Result<()> {
        for (before, after) in paired(old, new, |image| &image.entries) {
            if let Some(IndexEntry { table, form: IndexForm::Unique, key: Some(entry) }) = after
                && entry_key(before) != Some(entry)
            {
                self.require_free(*table, entry)?;
            }
        }
        for (before, after) in paired(old, new, |image| &image.entries) {
            let is_moved = entry_key(before) != entry_key(after);
            if let Some(IndexEntry { table, key: Some(entry), .. }) = before.filter(|_| is_moved) {
                self.remove_raw(*table, entry);
            }
            if let (Some(IndexEntry { table, form, key: Some(entry) }), Some(new)) = (after, new)
                && (is_moved || *form == IndexForm::Covering)
            {
                self.put_raw(*table, entry, &entry_payload(*form, key, &new.payload));
            }
        }
        Ok(())
    }

    /// Fails if a unique index already has an entry. Rules check this first, so this is a defect, and nothing may be
    /// overwritten.
    fn require_free(&self, table: Table, entry: &[u8]) -> Result<()> {
        if self.get_raw(table, entry)?.is_none() {
            return Ok(());
        }
        Err(Error::internal(format_args!("{}: a second record under one key", table.name())))
    }

    fn resum(&mut self, old: Option<&Image>, new: Option<&Image>) -> Result<()> {
        for (before, after) in paired(old, new, |image| &image.sums) {
            match (before.and_then(Option::as_ref), after.and_then(Option::as_ref)) {
                (Some((key, before)), Some((same, after))) if key == same => {
                    self.move_sum(key, *before, *after)?;
                }
                (before, after) => {
                    if let Some((key, amount)) = before {
                        self.move_sum(key, *amount, 0)?;
                    }
                    if let Some((key, amount)) = after {
                        self.move_sum(key, 0, *amount)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Changes what a record adds to a tenant's sum from `before` to `after`, because a record that it refers to was
    /// changed.
    pub fn adjust<R: Record>(
        &mut self,
        sum: &Sum<R>,
        tenant: &impl Key,
        before: u64,
        after: u64,
    ) -> Result<()> {
        self.move_sum(&sum.key(&tenant.encoded()), before, after)
    }

    fn move_sum(&mut self, key: &[u8], before: u64, after: u64) -> Result<()> {
        if before == after {
            return Ok(());
        }
        let sum = read_number(self, Table::Counts, key)?;
        let moved = sum.checked_add(after).and_then(|sum| sum.checked_sub(before));
        let missing = || damaged(Table::Counts, &"a record exists that was never counted");
        self.set_count(key, moved.ok_or_else(missing)?);
        Ok(())
    }

    /// Adds the growth of one record to the sum of its owner and to the growth of the write. A sum never becomes negative: if
    /// a damaged file has a sum that is too small, it stays at 0 and `check` reports it.
    fn note_growth(&mut self, owner: Option<Owner>, bytes: i64) -> Result<()> {
        self.growth.add(owner, bytes);
        if let Some(owner) = owner.filter(|_| bytes != 0) {
            let key = owner.key();
            let sum = read_number(self, Table::Counts, &key)?;
            self.set_count(&key, sum.saturating_add_signed(bytes));
        }
        Ok(())
    }

    /// Sets the count or sum under `key`. A count of 0 is not stored.
    fn set_count(&mut self, key: &[u8], count: u64) {
        match count {
            0 => self.remove_raw(Table::Counts, key),
            _ => self.put_raw(Table::Counts, key, &count.encoded()),
        }
    }
}
