//! The values that a batch has changed. They stay in memory, sorted, until the batch is applied to redb.
//!
//! So a write is undone without redb, a value that several writes change is stored once, and redb gets its keys in
//! order. The changes of one write are kept too: to undo them if its rule fails, and to record them in the activity log.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, ControlFlow};

use redb::{AccessGuard, ReadableTable};

use crate::base::error::Result;
use crate::store::disk::engine::{Bytes, range_of, storage_error};
use crate::store::packed::{self, Entry, StoredValue};
use crate::store::record::byte_usage;
use crate::store::values::payload::{has_same_content, payload_of, unseal};
use crate::store::values::raw::{KeySpan, Order, Visit};
use crate::store::values::schema::{PerTable, Table};

/// A sealed value, or `None` for a key that the batch removed.
pub type PendingValue = Option<Vec<u8>>;

/// The changed values of one table.
pub type TableChanges = BTreeMap<Vec<u8>, PendingValue>;

/// The values that a batch has changed.
pub struct PendingValues {
    tables: PerTable<TableChanges>,
    /// The total length of the keys and values that were set since the last [`take`](Self::take) of all tables: about the
    /// memory that they take.
    pub bytes: usize,
}

impl Default for PendingValues {
    fn default() -> Self {
        Self { tables: PerTable::new(TableChanges::new), bytes: 0 }
    }
}

impl PendingValues {
    /// Returns what the batch has stored under `key`; `None` if it has not changed the key.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<&PendingValue> {
        self.tables.slot(table).get(key)
    }

    /// Returns the changed values of `table`.
    pub fn of(&self, table: Table) -> &TableChanges {
        self.tables.slot(table)
    }

    /// Changes the value under `key`. Returns what the batch had stored there before.
    pub fn set(&mut self, table: Table, key: &[u8], value: PendingValue) -> Option<PendingValue> {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        let values = self.tables.slot_mut(table);
        // A key that is already there needs no copy.
        match values.get_mut(key) {
            Some(known) => Some(std::mem::replace(known, value)),
            None => values.insert(key.to_vec(), value),
        }
    }

    /// Restores what [`set`](Self::set) returned.
    pub fn restore(&mut self, table: Table, key: Vec<u8>, before: Option<PendingValue>) {
        let values = self.tables.slot_mut(table);
        match before {
            Some(value) => values.insert(key, value),
            None => values.remove(&key),
        };
    }

    /// Removes and returns the changed values of each table that has any.
    pub fn take(&mut self) -> impl Iterator<Item = (Table, TableChanges)> + use<> {
        let Self { mut tables, .. } = std::mem::take(self);
        let changes =
            Table::ALL.iter().map(move |table| (*table, std::mem::take(tables.slot_mut(*table))));
        changes.filter(|(_, values)| !values.is_empty())
    }
}

/// Walks the keys of `span` as they will be once `pending` is applied to `base`.
/// Calls `visit` with each verified payload, until it breaks.
pub fn walk_merged(
    base: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    pending: &TableChanges,
    span: KeySpan<'_>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let Some(range) = range_of(base, span)? else { return Ok(()) };
    let upper = span.until.map_or(Bound::Unbounded, Bound::Excluded);
    let changed = pending.range::<[u8], _>((Bound::Included(span.from), upper));
    let (order, mut merge) = (span.order, Merge { table, skip: span.skip, visit });
    let changed = order.of(changed);
    let walked = if table.is_packed() {
        let stored = packed::entries(base, table, span)?;
        merge.walk(stored.map(|entry| entry.map(BaseEntry::Packed)), changed, order)
    } else {
        merge.walk(order.of(range).map(BaseEntry::of), changed, order)
    };
    walked.map(drop)
}

/// An entry of the table to which the changes will be applied.
enum BaseEntry<'s> {
    Value(AccessGuard<'s, Bytes>, AccessGuard<'s, Bytes>),
    Packed(Entry),
}

impl<'s> BaseEntry<'s> {
    fn of(stored: StoredValue<'s>) -> Result<Self> {
        stored.map(|(key, sealed)| Self::Value(key, sealed)).map_err(storage_error)
    }

    fn key(&self) -> &[u8] {
        match self {
            Self::Value(key, _) => key.value(),
            Self::Packed(entry) => &entry.key,
        }
    }

    fn payload(&self, table: Table) -> Result<&[u8]> {
        match self {
            Self::Value(key, sealed) => unseal(table, key.value(), sealed.value()),
            Self::Packed(entry) => Ok(&entry.payload),
        }
    }
}

/// A walk under way.
struct Merge<'m, 'v> {
    table: Table,
    skip: usize,
    visit: &'m mut Visit<'v>,
}

impl Merge<'_, '_> {
    fn walk<'s, 'p>(
        &mut self,
        stored: impl Iterator<Item = Result<BaseEntry<'s>>>,
        changed: impl Iterator<Item = (&'p Vec<u8>, &'p PendingValue)>,
        order: Order,
    ) -> Result<ControlFlow<()>> {
        let mut changed = changed.peekable();
        for entry in stored {
            let entry = entry?;
            let key = entry.key();
            let is_before = |changed: &[u8]| match order {
                Order::Ascending => changed < key,
                Order::Descending => changed > key,
            };
            while let Some((before, value)) = changed.next_if(|(next, _)| is_before(next)) {
                if self.show_pending(before, value)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let shown = match changed.next_if(|(next, _)| next.as_slice() == key) {
                Some((_, value)) => self.show_pending(key, value)?,
                None => self.show(key, entry.payload(self.table))?,
            };
            if shown.is_break() {
                return Ok(shown);
            }
        }
        for (key, value) in changed {
            if self.show_pending(key, value)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn show_pending(&mut self, key: &[u8], value: &PendingValue) -> Result<ControlFlow<()>> {
        match value {
            Some(sealed) => self.show(key, Ok(payload_of(sealed))),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    fn show(&mut self, key: &[u8], payload: Result<&[u8]>) -> Result<ControlFlow<()>> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        (self.visit)(key, payload?)
    }
}

/// One value as it was before the write changed it.
pub struct PriorValue {
    pub table: Table,
    pub key: Vec<u8>,
    /// What the batch had stored; `None` if it had not changed the key.
    pub before: Option<PendingValue>,
}

/// A record that a write created, updated or deleted. Has no `Debug`, because payloads may contain hashes and
/// addresses.
pub struct Change {
    /// The table of the record.
    pub table: Table,
    /// The primary key of the record.
    pub key: Vec<u8>,
    /// The payload before the write; `None` if the record is new.
    pub before: Option<Vec<u8>>,
    /// The payload after the write; `None` if the record was deleted.
    pub after: Option<Vec<u8>>,
}

impl Change {
    /// Whether the write only increased the version of the record.
    pub fn is_version_only(&self) -> Result<bool> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return Ok(false) };
        has_same_content(self.table, before, after)
    }

    /// Returns by how many bytes the record grew; negative if it became smaller or was deleted.
    pub fn growth(&self) -> i64 {
        let size = |payload: &Option<Vec<u8>>| {
            payload.as_ref().map_or(0, |payload| byte_usage::size(&self.key, payload).cast_signed())
        };
        size(&self.after) - size(&self.before)
    }
}

/// The changes of one write.
#[derive(Default)]
pub struct WriteChanges {
    /// The previous values, in the order of the changes.
    pub entries: Vec<PriorValue>,
    /// The changed records, in the order of their first change.
    pub changes: Vec<Change>,
    /// The index of each change. Filled once there are more than `MAX_LINEAR_SEARCH` changes.
    positions: HashMap<(Table, Vec<u8>), usize>,
    /// The tables and keys of the records that the entries in the activity log are about.
    pub subjects: Vec<(Table, Vec<u8>)>,
}

/// Up to this many changes are searched linearly.
const MAX_LINEAR_SEARCH: usize = 16;

impl WriteChanges {
    /// Adds a change. Two changes of one record are merged into one, from the first state to the last.
    pub fn note_change(&mut self, change: Change) {
        let known = self.place(&change);
        match known.and_then(|at| self.changes.get_mut(at)) {
            Some(known) => known.after = change.after,
            None => self.changes.push(change),
        }
    }

    fn place(&mut self, change: &Change) -> Option<usize> {
        let same = |known: &Change| known.table == change.table && known.key == change.key;
        if self.changes.len() <= MAX_LINEAR_SEARCH {
            return self.changes.iter().position(same);
        }
        for (at, known) in self.changes.iter().enumerate().skip(self.positions.len()) {
            self.positions.insert((known.table, known.key.clone()), at);
        }
        self.positions.get(&(change.table, change.key.clone())).copied()
    }

    /// Returns the first entry of each key in `table` that begins with `prefix`.
    pub fn first_entries(&self, table: Table, prefix: &[u8]) -> Vec<&PriorValue> {
        let mut first = Vec::<&PriorValue>::new();
        for entry in &self.entries {
            if entry.table == table
                && entry.key.starts_with(prefix)
                && first.iter().all(|known| known.key != entry.key)
            {
                first.push(entry);
            }
        }
        first
    }
}
