//! The values of a file as rows for an origin.

use std::ops::ControlFlow;
use std::vec;

use crate::error::Result;
use crate::store::values::position::Row;
use crate::store::values::schema::Table;

use super::snapshot::Snapshot;

/// The size of the rows that are in memory at a time: 1 MiB.
const SLICE_BYTES: usize = 1024 * 1024;

/// All values of a snapshot.
pub(in crate::store) struct StoredRows<'s> {
    snapshot: &'s Snapshot,
    /// The tables that follow the current one.
    tables: std::slice::Iter<'static, Table>,
    table: Option<Table>,
    /// The last key of the current table that was read.
    after: Option<Vec<u8>>,
    rows: vec::IntoIter<Row>,
}

impl<'s> StoredRows<'s> {
    pub(in crate::store) fn new(snapshot: &'s Snapshot) -> Self {
        let rows = Vec::new().into_iter();
        Self { snapshot, tables: Table::ALL.iter(), table: None, after: None, rows }
    }

    /// Reads the next rows of a table.
    fn read(&self, table: Table) -> Result<Vec<Row>> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.snapshot.each_stored_after(table, self.after.as_deref(), &mut |key, sealed| {
            let row = Row { table, key: key.to_vec(), sealed: Some(sealed.to_vec()) };
            bytes += row.size();
            rows.push(row);
            Ok(if bytes < SLICE_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(rows)
    }
}

impl Iterator for StoredRows<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            let rows = match self.table {
                Some(table) => self.read(table),
                None => Ok(Vec::new()),
            };
            let rows = match rows {
                Ok(rows) => rows,
                Err(error) => return Some(Err(error)),
            };
            if let Some(last) = rows.last() {
                self.after = Some(last.key.clone());
                self.rows = rows.into_iter();
            } else {
                let next = self.tables.next()?;
                (self.table, self.after) = (Some(*next), None);
            }
        }
    }
}
