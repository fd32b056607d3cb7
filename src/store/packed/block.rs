//! The content of one stored value of a packed table: several entries with adjacent keys.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::store::values::payload::damaged;
use crate::store::values::raw::Visit;
use crate::store::values::schema::Table;

/// A block ends once its entries take more than this many bytes. So mostly two blocks fit on one page of the file.
const FULL: usize = 1500;

/// A key of a packed table, and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Entry {
    pub(in crate::store) key: Vec<u8>,
    pub(in crate::store) payload: Vec<u8>,
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
pub(in crate::store) fn unpack(table: Table, key: &[u8], block: &[u8]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    walk_block(table, key, block, &mut |key, payload| {
        entries.push(Entry { key: key.to_vec(), payload: payload.to_vec() });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(entries)
}

/// Calls `visit` with the entries of a block of `table` that is stored under `key`, in the order of their keys, until it
/// breaks.
pub(super) fn walk_block(
    table: Table,
    key: &[u8],
    block: &[u8],
    visit: &mut Visit<'_>,
) -> Result<()> {
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

/// Divides entries, whose keys are in order, into blocks. Calls `take` with the key and the content of each.
pub(in crate::store) fn pack<'e>(
    entries: impl IntoIterator<Item = (&'e [u8], &'e [u8])>,
    mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut block = Draft::default();
    for (key, payload) in entries {
        if block.size > FULL {
            block.end(&mut take)?;
        }
        block.add(key, payload);
    }
    block.end(&mut take)
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
        let shared = shared_length(self.last, key);
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
    fn end(&mut self, take: &mut impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let block = postcard::to_stdvec(&self.entries).map_err(Error::internal)?;
        take(self.key, &block)?;
        *self = Self::default();
        Ok(())
    }
}

fn shared_length(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}
