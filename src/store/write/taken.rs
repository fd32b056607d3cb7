//! Rows of the origin that a copy takes.

use crate::error::Result;
use crate::store::disk::engine::storage_error;
use crate::store::values::payload::unseal;
use crate::store::values::position::Row;
use crate::store::values::schema::Table;

use super::WriteTx;
use super::batch::MAX_PENDING;

impl WriteTx<'_> {
    /// Opens every table, and creates those that do not exist.
    pub(in crate::store) fn open_tables(&mut self) -> Result<()> {
        Table::ALL.iter().try_for_each(|table| self.table(*table).map(drop))
    }

    /// Stores a row of the origin as it is, once the batch is applied.
    pub(in crate::store) fn take_row(&mut self, row: Row) -> Result<()> {
        let Row { table, key, sealed } = row;
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
        if self.pending.bytes() > MAX_PENDING {
            self.apply()?;
        }
        Ok(())
    }

    /// Stores a block of a packed table. The changes of a batch are entries of blocks, so a block cannot wait among them.
    fn take_block(&mut self, table: Table, key: &[u8], sealed: Option<&[u8]>) -> Result<()> {
        let opened = self.table_mut(table)?;
        let before = match sealed {
            Some(sealed) => opened.insert(key, sealed),
            None => opened.remove(key),
        };
        before.map_err(storage_error)?;
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
        self.pending.bytes()
    }
}
