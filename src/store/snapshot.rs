//! A consistent view of the file as one commit left it.

use std::sync::OnceLock;

use redb::{ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableError};

use crate::error::Result;

use super::engine::{Bytes, definition, get_from, storage_error, walk_from};
use super::per_table::PerTable;
use super::read::{Raw, Visit};
use super::record::open;
use super::schema::Table;
use super::window::Order;

/// What an inspection does with one key, and its opened payload or what is wrong with it.
pub(super) type Inspect<'v> = dyn FnMut(&[u8], Result<&[u8]>) -> Result<()> + 'v;
/// What is done with one key, and its value as it is stored.
pub(super) type InspectSealed<'v> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'v;

/// Called when the file could not be read.
pub(super) type Alarm = Box<dyn Fn() + Send + Sync>;

/// A consistent view of the file as one commit left it.
pub struct Snapshot {
    tables: PerTable<OnceLock<ReadOnlyTable<Bytes, Bytes>>>,
    transaction: ReadTransaction,
    alarm: Alarm,
    opening: u64,
}

impl Snapshot {
    pub(super) fn new(transaction: ReadTransaction, alarm: Alarm) -> Self {
        Self { tables: PerTable::new(OnceLock::new), transaction, alarm, opening: 0 }
    }

    /// The same state, read after the file was opened as often as `opening` says.
    pub(super) fn of_opening(self, opening: u64) -> Self {
        Self { opening, ..self }
    }

    /// A number that is another one each time the data file is opened, as it is after a restore. Versions of records
    /// can be compared only within one opening.
    pub fn opening(&self) -> u64 {
        self.opening
    }

    /// After one failed read redb refuses all others, and without a write nobody else would notice. A read that is
    /// stopped ([`BoundedRead`](super::BoundedRead)) has not failed.
    fn told<T>(&self, read: Result<T>) -> Result<T> {
        if read.as_ref().is_err_and(|error| error.status() == 503 && !error.is_overload()) {
            (self.alarm)();
        }
        read
    }

    /// Tables are opened once a snapshot, by whoever needs them first, and shared by all its readers.
    fn table(&self, table: Table) -> Result<&ReadOnlyTable<Bytes, Bytes>> {
        let cell = self.tables.slot(table);
        if let Some(opened) = cell.get() {
            return Ok(opened);
        }
        let opened = self.transaction.open_table(definition(table)).map_err(storage_error)?;
        Ok(cell.get_or_init(|| opened))
    }
}

impl Snapshot {
    /// Whether the file has this table, which one of another program has not.
    pub(super) fn holds(&self, table: Table) -> Result<bool> {
        match self.transaction.open_table(definition(table)) {
            Ok(_) => Ok(true),
            Err(TableError::Storage(error)) => Err(storage_error(error)),
            Err(_) => Ok(false),
        }
    }

    /// How many values there are in `table`, without a walk.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn len(&self, table: Table) -> Result<u64> {
        self.table(table)?.len().map_err(storage_error)
    }

    /// How many values there are in all tables.
    pub(super) fn values(&self) -> Result<u64> {
        self.values_of(Table::ALL)
    }

    /// How many values there are in these tables.
    pub(super) fn values_of(&self, tables: &[Table]) -> Result<u64> {
        tables.iter().map(|table| self.len(*table)).sum()
    }

    /// Whether something stands under `key`, whatever state it is in.
    pub(super) fn has(&self, table: Table, key: &[u8]) -> Result<bool> {
        Ok(self.table(table)?.get(key).map_err(storage_error)?.is_some())
    }

    /// Hands every key of `table` to `visit`, with its payload or what is wrong with it.
    pub(super) fn each(&self, table: Table, visit: &mut Inspect<'_>) -> Result<()> {
        self.each_sealed(table, &mut |key, sealed| visit(key, open(table, key, sealed)))
    }

    /// Hands every key of `table` to `visit`, with its value as it is stored.
    pub(super) fn each_sealed(&self, table: Table, visit: &mut InspectSealed<'_>) -> Result<()> {
        for entry in self.table(table)?.range::<&[u8]>(..).map_err(storage_error)? {
            let (key, sealed) = entry.map_err(storage_error)?;
            visit(key.value(), sealed.value())?;
        }
        Ok(())
    }
}

impl Snapshot {
    /// Does what [`raw_between`](Raw::raw_between) does, and tells `spend` the bytes of each value before it is opened,
    /// and 0 for each one that is skipped.
    pub(super) fn between_spending(
        &self,
        table: Table,
        span: (&[u8], Option<&[u8]>),
        (skip, order): (usize, Order),
        spend: impl Fn(usize) -> Result<()>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let walk = |opened| walk_from(opened, table, span, skip, order, spend, visit);
        self.told(self.table(table).and_then(walk))
    }
}

impl Raw for Snapshot {
    fn raw_get(
        &self,
        table: Table,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.told(self.table(table).and_then(|opened| get_from(opened, table, key, visit)))
    }

    fn raw_between(
        &self,
        table: Table,
        span: (&[u8], Option<&[u8]>),
        skip: usize,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.between_spending(table, span, (skip, order), |_| Ok(()), visit)
    }
}
