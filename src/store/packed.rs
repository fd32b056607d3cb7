//! Packed tables: tables that only grow at their ends, mostly, whose stored values are blocks of several entries.
//!
//! Everything above sees entries, as in other tables. A batch that adds many entries in one place stores a few blocks, and
//! neighbouring keys share their beginnings.

use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

use redb::{AccessGuard, ReadableTable, StorageError};
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::store::disk::engine::{Bytes, get_value, range_of, storage_error, walk_range};
use crate::store::values::payload::{damaged, payload_of, seal, unseal};
use crate::store::values::raw::{KeySpan, Order, Visit, VisitValue, continue_if};
use crate::store::values::schema::Table;

/// A block ends once its entries take more than this many bytes. So mostly two blocks fit on one page of the file.
const FULL: usize = 1500;

/// A key of a packed table, and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: Vec<u8>,
    pub payload: Vec<u8>,
}

/// An entry as a block contains it.
#[derive(Serialize, Deserialize)]
struct StoredEntry<'e> {
    /// How many bytes the key shares with the key before it. The first entry shares all: the block is stored under its key.
    shared: usize,
    /// The rest of the key.
    #[serde(borrow, with = "serde_bytes")]
    rest: &'e [u8],
    payload: StoredPayload<'e>,
}

#[derive(Serialize, Deserialize)]
enum StoredPayload<'e> {
    Bytes(#[serde(borrow, with = "serde_bytes")] &'e [u8]),
    /// The payload equals this many bytes at the end of the key, as in an index whose keys end with the primary key.
    EndOfKey(usize),
}

/// Returns the entries of a block of `table` that is stored under `key`, in the order of their keys.
pub fn unpack(table: Table, key: &[u8], block: &[u8]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    walk_block(table, key, block, &mut |key, payload| {
        entries.push(Entry { key: key.to_vec(), payload: payload.to_vec() });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(entries)
}

/// Calls `visit` with the entries of a block of `table` that is stored under `key`, in the order of their keys, until it
/// breaks.
fn walk_block(table: Table, key: &[u8], block: &[u8], visit: &mut Visit<'_>) -> Result<()> {
    let broken = || damaged(table, &"a block of entries cannot be read");
    // A block is a sequence as postcard stores it: the number of entries, then each of them.
    let (count, mut left) = postcard::take_from_bytes::<usize>(block).map_err(|_| broken())?;
    let mut key = key.to_vec();
    for _ in 0..count {
        let entry: StoredEntry<'_>;
        (entry, left) = postcard::take_from_bytes(left).map_err(|_| broken())?;
        if entry.shared > key.len() {
            return Err(broken());
        }
        key.truncate(entry.shared);
        key.extend_from_slice(entry.rest);
        let payload = match entry.payload {
            StoredPayload::Bytes(bytes) => bytes,
            StoredPayload::EndOfKey(length) => {
                let end = key.len().checked_sub(length).and_then(|start| key.get(start..));
                end.ok_or_else(broken)?
            }
        };
        if visit(&key, payload)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Divides entries, whose keys are in order, into blocks. Calls `visit` with the key and the content of each.
fn pack<'e>(
    entries: impl IntoIterator<Item = (&'e [u8], &'e [u8])>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut block = Draft::default();
    for (key, payload) in entries {
        if block.size > FULL {
            block.end(&mut visit)?;
        }
        block.add(key, payload);
    }
    block.end(&mut visit)
}

/// A block to which entries are added.
#[derive(Default)]
struct Draft<'e> {
    key: &'e [u8],
    last: &'e [u8],
    entries: Vec<StoredEntry<'e>>,
    /// How many bytes the entries take, without their lengths.
    size: usize,
}

impl<'e> Draft<'e> {
    fn add(&mut self, key: &'e [u8], payload: &'e [u8]) {
        if self.entries.is_empty() {
            (self.key, self.last) = (key, key);
        }
        let shared = self.last.iter().zip(key).take_while(|(one, other)| one == other).count();
        let rest = key.get(shared..).unwrap_or_default();
        let payload = if key.ends_with(payload) {
            StoredPayload::EndOfKey(payload.len())
        } else {
            self.size += payload.len();
            StoredPayload::Bytes(payload)
        };
        self.size += rest.len();
        self.last = key;
        self.entries.push(StoredEntry { shared, rest, payload });
    }

    /// Passes the block on and begins the next one.
    fn end(&mut self, visit: &mut impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let block = postcard::to_stdvec(&self.entries).map_err(Error::internal)?;
        visit(self.key, &block)?;
        *self = Self::default();
        Ok(())
    }
}

/// A key and a value as redb returns them.
pub type StoredValue<'s> =
    std::result::Result<(AccessGuard<'s, Bytes>, AccessGuard<'s, Bytes>), StorageError>;

/// Returns the block that contains `key`, or the last one before it.
fn block_at<'s>(
    source: &'s impl ReadableTable<Bytes, Bytes>,
    key: &[u8],
) -> Result<Option<(AccessGuard<'s, Bytes>, AccessGuard<'s, Bytes>)>> {
    let last = source.range::<&[u8]>(..=key).map_err(storage_error)?.next_back();
    last.transpose().map_err(storage_error)
}

/// Calls `visit` with the payload under `key` of a table, packed or not. Does not call it if the key is absent.
pub fn get(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    key: &[u8],
    visit: &mut VisitValue<'_>,
) -> Result<()> {
    if !table.is_packed() {
        return get_value(source, table, key, visit);
    }
    let Some((first, sealed)) = block_at(source, key)? else { return Ok(()) };
    let block = unseal(table, first.value(), sealed.value())?;
    walk_block(table, first.value(), block, &mut |entry, payload| match entry.cmp(key) {
        Ordering::Less => Ok(ControlFlow::Continue(())),
        Ordering::Equal => visit(payload).map(ControlFlow::Break),
        Ordering::Greater => Ok(ControlFlow::Break(())),
    })
}

/// Walks a table, packed or not, as [`walk_range`] does.
pub fn walk(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    span: KeySpan<'_>,
    spend: impl Fn(usize) -> Result<()>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    if !table.is_packed() {
        return walk_range(source, table, span, spend, visit);
    }
    for (at, entry) in entries(source, table, span)?.enumerate() {
        let Entry { key, payload } = entry?;
        if at < span.skip {
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

/// Returns the entries whose keys lie in the span, in its order, also those that a walk skips.
pub fn entries<'s>(
    source: &'s impl ReadableTable<Bytes, Bytes>,
    table: Table,
    span: KeySpan<'s>,
) -> Result<impl Iterator<Item = Result<Entry>> + 's> {
    // The block of the first entry may begin before it.
    let first = block_at(source, span.from)?.map(|(stored, _)| stored.value().to_vec());
    let blocks = range_of(source, KeySpan { from: first.as_deref().unwrap_or(span.from), ..span })?;
    let blocks = span.order.of(blocks.into_iter().flatten());
    Ok(blocks.flat_map(move |stored| in_span(entries_of(table, stored), span)))
}

fn entries_of(table: Table, stored: StoredValue<'_>) -> Result<Vec<Entry>> {
    let (key, sealed) = stored.map_err(storage_error)?;
    unpack(table, key.value(), unseal(table, key.value(), sealed.value())?)
}

/// Returns those entries that lie in the span, in its order.
fn in_span(
    block: Result<Vec<Entry>>,
    KeySpan { from, until, order, .. }: KeySpan<'_>,
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

type OpenTable<'t> = redb::Table<'t, Bytes, Bytes>;
/// Called with each key of a block that changes, and the sealed block that it has now.
type Note<'n> = dyn FnMut(&[u8], Option<&[u8]>) + 'n;

/// Applies changes of entries to their blocks: sealed values by key, in order, `None` for removed keys. New entries that no
/// block surrounds form blocks of their own, so what a batch adds in one place is stored together.
pub fn apply(
    opened: &mut OpenTable<'_>,
    table: Table,
    changes: impl IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    note: &mut Note<'_>,
) -> Result<()> {
    let mut changes = changes.into_iter().peekable();
    while let Some((key, _)) = changes.peek() {
        let (mut entries, end) = place_of(opened, table, key, note)?;
        while let Some((key, value)) = changes.next_if(|(key, _)| is_before_end(key, &end)) {
            let at = entries.partition_point(|entry| entry.key < key);
            if entries.get(at).is_some_and(|entry| entry.key == key) {
                drop(entries.remove(at));
            }
            if let Some(sealed) = value {
                entries.insert(at, Entry { key, payload: payload_of(&sealed).to_vec() });
            }
        }
        store(opened, table, &entries, note)?;
    }
    Ok(())
}

/// Removes the block around `key`. Returns its entries in their order, and the bound up to which changes of entries go into
/// the same block. If no block surrounds `key`, there are no entries, and the bound is the next block.
fn place_of(
    opened: &mut OpenTable<'_>,
    table: Table,
    key: &[u8],
    note: &mut Note<'_>,
) -> Result<(Vec<Entry>, Bound<Vec<u8>>)> {
    if let Some((first, entries)) = block_around(opened, table, key)? {
        opened.remove(first.as_slice()).map_err(storage_error)?;
        note(&first, None);
        let end = entries.last().map_or(first, |last| last.key.clone());
        return Ok((entries, Bound::Included(end)));
    }
    let next = opened.range::<&[u8]>((Bound::Excluded(key), Bound::Unbounded));
    let next = next.map_err(storage_error)?.next().transpose().map_err(storage_error)?;
    let end = next.map_or(Bound::Unbounded, |(next, _)| Bound::Excluded(next.value().to_vec()));
    Ok((Vec::new(), end))
}

/// Returns the key and the entries of the block whose first key is at most `key` and whose last is at least `key`.
fn block_around(
    opened: &OpenTable<'_>,
    table: Table,
    key: &[u8],
) -> Result<Option<(Vec<u8>, Vec<Entry>)>> {
    let Some((first, sealed)) = block_at(opened, key)? else { return Ok(None) };
    let (first, block) = (first.value(), unseal(table, first.value(), sealed.value())?);
    let mut is_around = false;
    walk_block(table, first, block, &mut |entry, _| {
        is_around = entry >= key;
        Ok(continue_if(!is_around))
    })?;
    if !is_around {
        return Ok(None);
    }
    Ok(Some((first.to_vec(), unpack(table, first, block)?)))
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
    entries: &[Entry],
    note: &mut Note<'_>,
) -> Result<()> {
    let entries = entries.iter().map(|entry| (entry.key.as_slice(), entry.payload.as_slice()));
    pack(entries, |key, block| {
        let sealed = seal(table, key, block);
        opened.insert(key, sealed.as_slice()).map_err(storage_error)?;
        note(key, Some(&sealed));
        Ok(())
    })
}
