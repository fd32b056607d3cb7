//! Walking the rows that a list shows, by their keys.

use std::ops::{Bound, ControlFlow};

use redb::ReadableTable;

use crate::error::Result;

use super::super::engine::{Bytes, storage_error};
use super::super::sealed::unseal;
use super::RankedList;

impl RankedList {
    /// Returns whether the list shows a row with this sealed value, or without a value.
    pub(super) fn shows(&self, key: &[u8], sealed: Option<&[u8]>) -> Result<bool> {
        match (sealed, self.shows) {
            (None, _) => Ok(false),
            (Some(_), None) => Ok(true),
            (Some(sealed), Some(shows)) => shows(unseal(self.table, key, sealed)?),
        }
    }

    /// Calls `visit` with the key of each row from `from` up to, but not including, `until`, and whether the list shows
    /// the row, until `visit` breaks.
    pub(super) fn each_row(
        &self,
        rows: &impl ReadableTable<Bytes, Bytes>,
        (from, until): (&[u8], Option<&[u8]>),
        mut visit: impl FnMut(&[u8], bool) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // redb panics on a range whose end is before its start.
        if until.is_some_and(|until| until <= from) {
            return Ok(());
        }
        let upper = until.map_or(Bound::Unbounded, Bound::Excluded);
        for entry in rows.range::<&[u8]>((Bound::Included(from), upper)).map_err(storage_error)? {
            let (key, sealed) = entry.map_err(storage_error)?;
            let is_shown = self.shows(key.value(), Some(sealed.value()))?;
            if visit(key.value(), is_shown)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
