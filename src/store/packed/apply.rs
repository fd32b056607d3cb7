//! Changing the blocks of packed tables.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use redb::ReadableTable;

use crate::error::Result;
use crate::store::disk::engine::{Bytes, storage_error};
use crate::store::values::payload::{payload_of, seal, unseal};
use crate::store::values::schema::Table;

use super::block::{pack, unpack, walk_block};
use super::read::block_at;

type OpenTable<'t> = redb::Table<'t, Bytes, Bytes>;
/// The payloads of a block by key.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Called with each key of a block that changes, and the sealed block that it has now.
type Note<'n> = dyn FnMut(&[u8], Option<&[u8]>) + 'n;

/// Applies changes of entries to their blocks: sealed values by key, in order, `None` for removed keys. New entries that no
/// block surrounds form blocks of their own, so what a batch adds in one place is stored together.
pub(in crate::store) fn apply(
    opened: &mut OpenTable<'_>,
    table: Table,
    changes: impl IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    note: &mut Note<'_>,
) -> Result<()> {
    let mut changes = changes.into_iter().peekable();
    while let Some((key, _)) = changes.peek() {
        let (mut entries, end) = place_of(opened, table, key, note)?;
        while let Some((key, value)) = changes.next_if(|(key, _)| is_before_end(key, &end)) {
            match value {
                Some(sealed) => drop(entries.insert(key, payload_of(&sealed).to_vec())),
                None => drop(entries.remove(&key)),
            }
        }
        store(opened, table, &entries, note)?;
    }
    Ok(())
}

/// Removes the block around `key`. Returns its entries, and the bound up to which changes of entries go into the same
/// block. If no block surrounds `key`, there are no entries, and the bound is the next block.
fn place_of(
    opened: &mut OpenTable<'_>,
    table: Table,
    key: &[u8],
    note: &mut Note<'_>,
) -> Result<(Entries, Bound<Vec<u8>>)> {
    if let Some((first, entries)) = block_around(opened, table, key)? {
        opened.remove(first.as_slice()).map_err(storage_error)?;
        note(&first, None);
        let end = entries.last_key_value().map_or(first, |(last, _)| last.clone());
        return Ok((entries, Bound::Included(end)));
    }
    let next = opened.range::<&[u8]>((Bound::Excluded(key), Bound::Unbounded));
    let next = next.map_err(storage_error)?.next().transpose().map_err(storage_error)?;
    let end = next.map_or(Bound::Unbounded, |(next, _)| Bound::Excluded(next.value().to_vec()));
    Ok((Entries::new(), end))
}

/// Returns the key and the entries of the block whose first key is at most `key` and whose last is at least `key`.
fn block_around(
    opened: &OpenTable<'_>,
    table: Table,
    key: &[u8],
) -> Result<Option<(Vec<u8>, Entries)>> {
    let Some((first, sealed)) = block_at(opened, key)? else { return Ok(None) };
    let (first, block) = (first.value(), unseal(table, first.value(), sealed.value())?);
    let mut is_around = false;
    walk_block(table, first, block, &mut |entry, _| {
        is_around = entry >= key;
        Ok(if is_around { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !is_around {
        return Ok(None);
    }
    let entries = unpack(table, first, block)?.into_iter().map(|entry| (entry.key, entry.payload));
    Ok(Some((first.to_vec(), entries.collect())))
}

fn is_before_end(key: &Vec<u8>, end: &Bound<Vec<u8>>) -> bool {
    match end {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    }
}

fn store(
    opened: &mut OpenTable<'_>,
    table: Table,
    entries: &Entries,
    note: &mut Note<'_>,
) -> Result<()> {
    let entries = entries.iter().map(|(key, payload)| (key.as_slice(), payload.as_slice()));
    pack(entries, |key, block| {
        let sealed = seal(table, key, block);
        opened.insert(key, sealed.as_slice()).map_err(storage_error)?;
        note(key, Some(&sealed));
        Ok(())
    })
}
