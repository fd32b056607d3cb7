//! Applying the changes of a batch to redb, in the order of their keys, and the rows of the origin that a copy takes.

use std::ops::Bound;

use redb::ReadableTable;

use crate::base::error::Result;
use crate::store::changes::batch_diff::BatchDiff;
use crate::store::changes::pending_values::TableChanges;
use crate::store::disk::engine::{Bytes, set_value, storage_error};
use crate::store::packed;
use crate::store::values::payload::unseal;
use crate::store::values::position::OriginRow;
use crate::store::values::schema::Table;

use super::WriteTx;
use super::batch::MAX_PENDING;

/// The smallest number of new values for which a look at their gap pays.
const MIN_RUN: usize = 4;

impl WriteTx<'_> {
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

impl WriteTx<'_> {
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
            return self.take_block(table, &key, sealed.as_deref());
        }
        self.pending.set(table, &key, sealed);
        if self.pending.bytes > MAX_PENDING {
            self.apply()?;
        }
        Ok(())
    }

    /// Stores a block of a packed table. The changes of a batch are entries of blocks, so a block cannot wait among them.
    fn take_block(&mut self, table: Table, key: &[u8], sealed: Option<&[u8]>) -> Result<()> {
        set_value(self.table_mut(table)?, key, sealed)?;
        self.diff.add_table(table);
        self.diff.add(table, key, sealed);
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
