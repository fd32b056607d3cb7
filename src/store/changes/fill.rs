//! Filling a new file with values that are already sealed.

use std::fs::File;

use redb::backends::FileBackend;
use redb::{Database, WriteTransaction};

use crate::error::{Error, Result};
use crate::store::disk::engine::{Bytes, definition, storage_error};
use crate::store::disk::file::builder;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::{PerTable, Table};

use super::value_log::Visitor;

/// The page cache for a file that is written and read once: 16 MiB.
pub(in crate::store) const PAGE_CACHE: usize = 16 * 1024 * 1024;

/// The tables of a transaction that stores sealed values.
struct Target<'t> {
    transaction: &'t WriteTransaction,
    tables: PerTable<Option<redb::Table<'t, Bytes, Bytes>>>,
}

impl<'t> Target<'t> {
    fn table(&mut self, table: Table) -> Result<&mut redb::Table<'t, Bytes, Bytes>> {
        let slot = self.tables.slot_mut(table);
        if let Some(opened) = slot {
            return Ok(opened);
        }
        let opened = self.transaction.open_table(definition(table)).map_err(storage_error)?;
        Ok(slot.insert(opened))
    }

    fn change(&mut self, table: Table, key: &[u8], sealed: Option<&[u8]>) -> Result<()> {
        let opened = self.table(table)?;
        match sealed {
            Some(sealed) => opened.insert(key, sealed).map_err(storage_error)?,
            None => opened.remove(key).map_err(storage_error)?,
        };
        Ok(())
    }
}

/// Creates all tables that do not exist yet, applies the values that `source` passes on in their order, and commits the
/// transaction. Returns what `source` returns.
pub(in crate::store) fn fill<T>(
    transaction: WriteTransaction,
    source: impl FnOnce(&mut Visitor<'_>) -> Result<T>,
) -> Result<T> {
    let mut target = Target { transaction: &transaction, tables: PerTable::new(|| None) };
    for table in Table::ALL {
        target.table(*table)?;
    }
    let passed = source(&mut |table, key, sealed| target.change(table, key, sealed))?;
    drop(target);
    transaction.commit().map_err(storage_error)?;
    Ok(passed)
}

/// Opens a file that has no name. An empty file becomes an empty database.
pub(in crate::store) fn open_unnamed(file: File) -> Result<Database> {
    let backend = FileBackend::new(file).map_err(storage_error)?;
    builder(PAGE_CACHE).create_with_backend(backend).map_err(storage_error)
}

/// Fails unless the file contains `values` values.
pub(in crate::store) fn require_length(database: &Database, values: u64) -> Result<()> {
    let found = Snapshot::begin(database)?.values()?;
    if found == values {
        return Ok(());
    }
    Err(Error::internal(format_args!("a copy has {found} values instead of {values}")))
}
