//! Reading the entries of packed tables.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use redb::{AccessGuard, ReadableTable, StorageError};

use crate::error::Result;
use crate::store::disk::engine::{Bytes, range_of, storage_error};
use crate::store::values::payload::unseal;
use crate::store::values::raw::{Order, Visit};
use crate::store::values::schema::Table;

use super::block::{Entry, unpack, walk_block};

/// A key and a value as redb returns them.
type StoredBlock<'s> =
    std::result::Result<(AccessGuard<'s, Bytes>, AccessGuard<'s, Bytes>), StorageError>;

/// Returns the block that contains `key`, or the last one before it.
pub(super) fn block_at<'s>(
    source: &'s impl ReadableTable<Bytes, Bytes>,
    key: &[u8],
) -> Result<Option<(AccessGuard<'s, Bytes>, AccessGuard<'s, Bytes>)>> {
    let last = source.range::<&[u8]>(..=key).map_err(storage_error)?.next_back();
    last.transpose().map_err(storage_error)
}

/// Returns the key of the block that contains `key`, or of the last one before it.
fn block_key(source: &impl ReadableTable<Bytes, Bytes>, key: &[u8]) -> Result<Option<Vec<u8>>> {
    Ok(block_at(source, key)?.map(|(stored, _)| stored.value().to_vec()))
}

/// Calls `visit` with the payload under `key`. Does not call it if the key is absent.
pub(in crate::store) fn get(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    key: &[u8],
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let Some((first, sealed)) = block_at(source, key)? else { return Ok(()) };
    let block = unseal(table, first.value(), sealed.value())?;
    walk_block(table, first.value(), block, &mut |entry, payload| match entry.cmp(key) {
        Ordering::Less => Ok(ControlFlow::Continue(())),
        Ordering::Equal => visit(payload).map(ControlFlow::Break),
        Ordering::Greater => Ok(ControlFlow::Break(())),
    })
}

/// Walks as [`walk_range`](crate::store::disk::engine::walk_range) does.
pub(in crate::store) fn walk(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    span: (&[u8], Option<&[u8]>),
    (skip, order): (usize, Order),
    spend: impl Fn(usize) -> Result<()>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    for (at, entry) in entries(source, table, span, order)?.enumerate() {
        let Entry { key, payload } = entry?;
        if at < skip {
            spend(0)?;
            continue;
        }
        spend(payload.len())?;
        if visit(&key, &payload)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the entries whose keys lie from `span.0` up to, but not including, `span.1` (`None`: the end of the table).
pub(in crate::store) fn entries<'s>(
    source: &'s impl ReadableTable<Bytes, Bytes>,
    table: Table,
    span: (&'s [u8], Option<&'s [u8]>),
    order: Order,
) -> Result<impl Iterator<Item = Result<Entry>> + 's> {
    // The block of the first entry may begin before it.
    let first = block_key(source, span.0)?;
    let blocks = range_of(source, (first.as_deref().unwrap_or(span.0), span.1))?;
    let blocks: Box<dyn Iterator<Item = StoredBlock<'s>> + 's> = match (blocks, order) {
        (None, _) => Box::new(std::iter::empty()),
        (Some(blocks), Order::Ascending) => Box::new(blocks),
        (Some(blocks), Order::Descending) => Box::new(blocks.rev()),
    };
    Ok(blocks.flat_map(move |stored| in_span(entries_of(table, stored), span, order)))
}

fn entries_of(table: Table, stored: StoredBlock<'_>) -> Result<Vec<Entry>> {
    let (key, sealed) = stored.map_err(storage_error)?;
    unpack(table, key.value(), unseal(table, key.value(), sealed.value())?)
}

/// Returns those entries that lie in the span, in this order.
fn in_span(
    block: Result<Vec<Entry>>,
    (from, until): (&[u8], Option<&[u8]>),
    order: Order,
) -> Vec<Result<Entry>> {
    let mut block = match block {
        Ok(block) => block,
        Err(error) => return vec![Err(error)],
    };
    if order == Order::Descending {
        block.reverse();
    }
    let is_in = |entry: &Entry| {
        entry.key.as_slice() >= from && until.is_none_or(|until| entry.key.as_slice() < until)
    };
    block.into_iter().filter(is_in).map(Ok).collect()
}
