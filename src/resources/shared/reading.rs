//! Reads that several resources share.

use serde::Deserialize;

use crate::base::error::{Error, Result};
use crate::store::{Index, Key, Order, Raw, Record, Row, Tx, Window};

/// Returns what `pick` takes of the records under a prefix, in the order of their keys.
pub fn collect<R: Record, T, C: Default + Extend<T>>(
    tx: &dyn Raw,
    prefix: &impl Key,
    mut pick: impl FnMut(R::Meta) -> Option<T>,
) -> Result<C> {
    let mut picked = C::default();
    tx.scan::<R, _>(prefix, Window::all(Order::Ascending), |row| {
        picked.extend(pick(row.meta));
        Ok(())
    })?;
    Ok(picked)
}

/// Calls `visit` with the records of a page, in the order of an index. Returns the number of records under the prefix.
pub fn walk_page<R: Record, K: Key>(
    tx: &dyn Raw,
    index: &Index<R, K>,
    prefix: &impl Key,
    window: Window,
    visit: impl FnMut(Row<'_, R>) -> Result<()>,
) -> Result<u64> {
    let count = tx.count::<R>(prefix)?;
    if window.begins_within(count) {
        tx.walk(index, prefix, window, visit)?;
    }
    Ok(count)
}

/// Works as [`walk_page`], without the records that `keep` drops. `hidden` is their number.
pub fn walk_visible<R: Record, K: Key>(
    tx: &dyn Raw,
    index: &Index<R, K>,
    prefix: &impl Key,
    window: Window,
    hidden: u64,
    keep: impl FnMut(&R::Meta) -> bool,
    visit: impl FnMut(Row<'_, R>) -> Result<()>,
) -> Result<u64> {
    let count = tx.count::<R>(prefix)?.saturating_sub(hidden);
    if !window.begins_within(count) {
        return Ok(count);
    }
    if hidden == 0 {
        tx.walk(index, prefix, window, visit)?;
    } else {
        tx.walk_where(index, prefix, window, keep, visit)?;
    }
    Ok(count)
}

/// Parses the stored JSON of a record into those of its fields that `T` has.
pub fn parse_fields<'r, R: Record, T: Deserialize<'r>>(row: &Row<'r, R>) -> Result<T> {
    serde_json::from_slice(row.fields).map_err(Error::internal)
}
