//! Copies of the data file: filling a new file with values that are already sealed, and replacing the data file with it, after a
//! compaction and after a failed sync.

use std::fs::File;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Database, WriteTransaction};

use crate::base::error::{Error, Result};
use crate::store::disk::engine::{begin, catch_panic, definition, set_value, storage_error};
use crate::store::disk::file::{self, builder};
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::payload::damaged;
use crate::store::values::schema::{PerTable, Table};

use super::value_log::Visitor;

/// The page cache for a file that is written and read once: 16 MiB.
pub const PAGE_CACHE: usize = 16 * 1024 * 1024;

/// Creates all tables that do not exist yet, applies the values that `source` passes on in their order, and commits the
/// transaction. Returns what `source` returns.
pub fn fill<T>(
    transaction: WriteTransaction,
    source: impl FnOnce(&mut Visitor<'_>) -> Result<T>,
) -> Result<T> {
    let mut tables = PerTable::new(|| None);
    for table in Table::ALL {
        let opened = transaction.open_table(definition(*table)).map_err(storage_error)?;
        *tables.slot_mut(*table) = Some(opened);
    }
    let passed = source(&mut |table, key, sealed| {
        let opened = tables.slot_mut(table).as_mut().ok_or_else(|| damaged(table, &"not open"))?;
        set_value(opened, key, sealed)
    })?;
    drop(tables);
    transaction.commit().map_err(storage_error)?;
    Ok(passed)
}

/// Opens a file that has no name. An empty file becomes an empty database.
pub fn open_unnamed(file: File) -> Result<Database> {
    let backend = FileBackend::new(file).map_err(storage_error)?;
    builder(PAGE_CACHE).create_with_backend(backend).map_err(storage_error)
}

/// Fails unless the file contains `values` values.
pub fn require_length(database: &Database, values: u64) -> Result<()> {
    let found = Snapshot::begin(database)?.values()?;
    if found == values {
        return Ok(());
    }
    Err(Error::internal(format_args!("a copy has {found} values instead of {values}")))
}

/// Fills the copy at `draft` with the values that `source` passes on, and lets redb check what was written. Returns what
/// `source` returns.
pub fn fill_copy<T>(
    copy: &mut Database,
    draft: &Path,
    progress: &Progress,
    source: impl FnOnce(&mut Visitor<'_>) -> Result<T>,
) -> Result<T, OpenError> {
    let passed = fill(begin(copy)?, source)?;
    progress.begin("checking the structure", 0);
    match catch_panic(|| copy.check_integrity()) {
        Some(Ok(true)) => Ok(passed),
        _ => Err(OpenError::damaged(draft, &"its structure is not what was written")),
    }
}

/// Why a copy did not replace the data file.
pub enum NotSwapped {
    /// Nothing was changed. For example, the data file is a mount point of its own.
    Kept(OpenError),
    /// A power cut could leave either of the two files.
    Unknown(OpenError),
}

/// Gives a complete copy the name of the data file.
pub fn swap(fs: &FsHandle, draft: &Path, data: &Path) -> Result<(), NotSwapped> {
    if let Err(cause) = fs.file_system().rename(draft, data) {
        let refused = file::not_replaced(data)(cause);
        let is_kept = fs.file_system().is_file(draft).is_ok();
        return Err(if is_kept { NotSwapped::Kept(refused) } else { NotSwapped::Unknown(refused) });
    }
    file::sync_folder(fs, data).map_err(NotSwapped::Unknown)
}
