//! A consistent view of the file, as one commit left it.

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};

use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableError,
};

use crate::base::error::Result;
use crate::base::tasks::spawn_thread;
use crate::store::disk::engine::{Bytes, definition, storage_error};
use crate::store::packed::{self, unpack};
use crate::store::values::payload::unseal;
use crate::store::values::position::{OriginRow, Position};
use crate::store::values::raw::{KeySpan, Raw, Visit, VisitValue};
use crate::store::values::schema::{PerTable, Table};

/// Called with a key and its verified payload, or the error of its verification.
pub type InspectValue<'v> = dyn FnMut(&[u8], Result<&[u8]>) -> Result<()> + 'v;
/// Called with a key and its sealed value.
pub type InspectSealed<'v> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'v;

/// Called when a read of the file fails.
pub type ReadFailureHook = Box<dyn Fn() + Send + Sync>;

/// A consistent view of the file, as one commit left it.
pub struct Snapshot {
    tables: PerTable<OnceLock<ReadOnlyTable<Bytes, Bytes>>>,
    transaction: ReadTransaction,
    on_read_failure: ReadFailureHook,
    /// How often the file had been opened before.
    pub(in crate::store) generation: u64,
    /// The version of the access tables.
    pub(in crate::store) access_version: u64,
    /// The last commit of the origin in it; [`Position::NONE`] without an origin.
    pub(in crate::store) position: Position,
    /// Dropped last: the file is closed only after its transaction has ended.
    _file: Option<Arc<OpenedFile>>,
}

impl Snapshot {
    /// Begins a read of the last committed state of a database that is not served. A failed read is reported to no
    /// writer.
    pub(in crate::store) fn begin(database: &Database) -> Result<Self> {
        Self::new(database, Box::new(|| ()))
    }

    pub(in crate::store) fn new(
        database: &Database,
        on_read_failure: ReadFailureHook,
    ) -> Result<Self> {
        Ok(Self {
            tables: PerTable::new(OnceLock::new),
            transaction: database.begin_read().map_err(storage_error)?,
            on_read_failure,
            generation: 0,
            access_version: 0,
            position: Position::NONE,
            _file: None,
        })
    }

    /// Keeps `file` open as long as this snapshot exists.
    pub(in crate::store) fn of_file(self, file: Arc<OpenedFile>) -> Self {
        Self { _file: Some(file), ..self }
    }

    /// A number that differs each time the data file is opened, also after a restore. Versions of records are
    /// comparable only within one opening.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Calls the alarm if a read failed. After one failed read redb refuses all others, and without a write
    /// nothing else would notice. A read stopped by its limit ([`BoundedRead`](super::bounded_read::BoundedRead)) has not
    /// failed.
    fn note_failure<T>(&self, read: Result<T>) -> Result<T> {
        if read.as_ref().is_err_and(|error| error.status() == 503 && !error.is_overload()) {
            (self.on_read_failure)();
        }
        read
    }

    /// The first reader of a table opens it; all readers of the snapshot share it.
    fn table(&self, table: Table) -> Result<&ReadOnlyTable<Bytes, Bytes>> {
        let cell = self.tables.slot(table);
        if let Some(opened) = cell.get() {
            return Ok(opened);
        }
        let opened = self.transaction.open_table(definition(table)).map_err(storage_error)?;
        Ok(cell.get_or_init(|| opened))
    }

    /// Whether the file contains this table. A file of another program does not.
    pub(in crate::store) fn holds(&self, table: Table) -> Result<bool> {
        match self.transaction.open_table(definition(table)) {
            Ok(_) => Ok(true),
            Err(TableError::Storage(error)) => Err(storage_error(error)),
            Err(_) => Ok(false),
        }
    }

    /// Returns the number of stored values in `table` without a walk. A block counts as one.
    pub fn len(&self, table: Table) -> Result<u64> {
        self.table(table)?.len().map_err(storage_error)
    }

    /// Returns the size in bytes of the pages of `table`. Reads all of them.
    pub(in crate::store) fn size(&self, table: Table) -> Result<u64> {
        let pages = self.table(table)?.stats().map_err(storage_error)?;
        Ok(pages.stored_bytes() + pages.metadata_bytes() + pages.fragmented_bytes())
    }

    /// Returns the number of values in all tables.
    pub(in crate::store) fn values(&self) -> Result<u64> {
        self.values_of(Table::ALL)
    }

    /// Returns the number of values in these tables.
    pub(in crate::store) fn values_of(&self, tables: &[Table]) -> Result<u64> {
        tables.iter().map(|table| self.len(*table)).sum()
    }

    /// Whether a value exists under `key`, valid or not.
    pub(in crate::store) fn has(&self, table: Table, key: &[u8]) -> Result<bool> {
        Ok(self.table(table)?.get(key).map_err(storage_error)?.is_some())
    }

    /// Calls `visit` with every key of `table` and its verified payload, or the error of its verification.
    #[doc(hidden)]
    pub fn each(&self, table: Table, visit: &mut InspectValue<'_>) -> Result<()> {
        self.each_sealed(table, &mut |key, sealed| {
            let payload = unseal(table, key, sealed);
            if !table.is_packed() {
                return visit(key, payload);
            }
            match payload.and_then(|block| unpack(table, key, block)) {
                Ok(entries) => {
                    entries.iter().try_for_each(|entry| visit(&entry.key, Ok(&entry.payload)))
                }
                Err(error) => visit(key, Err(error)),
            }
        })
    }

    /// Returns the values of `table` as rows of an origin.
    pub(in crate::store) fn rows(
        &self,
        table: Table,
    ) -> Result<impl Iterator<Item = Result<OriginRow>>> {
        let stored = self.table(table)?.range::<&[u8]>(..).map_err(storage_error)?;
        Ok(stored.map(move |entry| {
            entry.map_err(storage_error).map(|(key, sealed)| {
                let (key, sealed) = (key.value().to_vec(), Some(sealed.value().to_vec()));
                OriginRow { table, key, sealed }
            })
        }))
    }

    /// Calls `visit` with every key of `table` and its sealed value.
    pub(in crate::store) fn each_sealed(
        &self,
        table: Table,
        visit: &mut InspectSealed<'_>,
    ) -> Result<()> {
        self.each_stored_after(table, None, &mut |key, sealed| {
            visit(key, sealed).map(ControlFlow::Continue)
        })
    }

    /// Calls `visit` with every key of `table` after `after` and its sealed value, until `visit` breaks.
    pub(in crate::store) fn each_stored_after(
        &self,
        table: Table,
        after: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let opened = self.table(table)?;
        for entry in opened.range::<&[u8]>((from, Bound::Unbounded)).map_err(storage_error)? {
            let (key, sealed) = entry.map_err(storage_error)?;
            if visit(key.value(), sealed.value())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Walks as [`raw_between`](Raw::raw_between) does. Calls `spend` with the size of each value before
    /// verifying it, and with 0 for each skipped key.
    pub(super) fn between_spending(
        &self,
        table: Table,
        span: KeySpan<'_>,
        spend: impl Fn(usize) -> Result<()>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let walk = |opened| packed::walk(opened, table, span, spend, visit);
        self.note_failure(self.table(table).and_then(walk))
    }
}

impl Raw for Snapshot {
    fn raw_get(&self, table: Table, key: &[u8], visit: &mut VisitValue<'_>) -> Result<()> {
        let get = |opened| packed::get(opened, table, key, visit);
        self.note_failure(self.table(table).and_then(get))
    }

    fn raw_between(&self, table: Table, span: KeySpan<'_>, visit: &mut Visit<'_>) -> Result<()> {
        self.between_spending(table, span, |_| Ok(()), visit)
    }

    fn as_dyn(&self) -> &dyn Raw {
        self
    }
}

/// Keeps a file open. Each of its snapshots has it, and so does the writer until another file replaces this one.
#[derive(Default)]
pub struct OpenedFile {
    /// The file, once it is replaced.
    replaced: OnceLock<Database>,
}

impl OpenedFile {
    /// Closes `database` when the last snapshot of it is dropped.
    pub fn close_after_snapshots(&self, database: Database) {
        // If this failed, the file would be closed at once, and its snapshots would fail with 503.
        let _ = self.replaced.set(database);
    }
}

impl Drop for OpenedFile {
    /// Closes the file on a thread of its own: the operating system then frees its space, which takes long for a large file.
    fn drop(&mut self) {
        let Some(database) = self.replaced.take() else { return };
        if let Err(error) = spawn_thread("background", move || drop(database)) {
            tracing::debug!(%error, "a replaced data file is closed on this thread");
        }
    }
}
