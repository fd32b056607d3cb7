//! The changes of one write: to undo them if its rule fails, and to record them in the activity log.

use std::collections::HashMap;

use crate::base::error::Result;
use crate::store::record::byte_usage;
use crate::store::values::payload::has_same_content;
use crate::store::values::schema::Table;

use super::pending_values::PendingValue;

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
