//! What a write changed: to take it back when its rule fails, and to tell the activity log.

use std::collections::HashMap;

use super::bytes;
use super::schema::Table;

/// One value as it was before a write touched it.
pub(super) struct Note {
    pub(super) table: Table,
    pub(super) key: Vec<u8>,
    pub(super) before: Before,
}

/// What stood there.
pub(super) enum Before {
    /// The sealed value, or none where there was none.
    Sealed(Option<Vec<u8>>),
    /// A number that is kept aside.
    Number(u64),
}

/// A record that a write added, changed or removed. Payloads may hold hashes and addresses: no Debug.
pub struct Change {
    /// Where the record is kept.
    pub table: Table,
    /// Its primary key.
    pub key: Vec<u8>,
    /// Its payload before the write; none where it is new.
    pub before: Option<Vec<u8>>,
    /// Its payload now; none where it was removed.
    pub after: Option<Vec<u8>>,
}

impl Change {
    /// By how many bytes the record grows; negative if it becomes smaller or is removed.
    pub fn growth(&self) -> i64 {
        let size = |payload: &Option<Vec<u8>>| {
            payload.as_ref().map_or(0, |payload| bytes::size(&self.key, payload).cast_signed())
        };
        size(&self.after) - size(&self.before)
    }
}

/// The notes of one write.
#[derive(Default)]
pub(super) struct Undo {
    notes: Vec<Note>,
    changes: Vec<Change>,
    /// Where each change stands; made once there are more than a few.
    places: HashMap<(Table, Vec<u8>), usize>,
}

/// So many changes are looked through one by one.
const FEW: usize = 16;

impl Undo {
    pub(super) fn wrote(&mut self, table: Table, key: &[u8], before: Before) {
        self.notes.push(Note { table, key: key.to_vec(), before });
    }

    /// A record changed twice in one write is one change, from its first state to its last.
    pub(super) fn changed(&mut self, change: Change) {
        let known = self.place(&change);
        match known.and_then(|at| self.changes.get_mut(at)) {
            Some(known) => known.after = change.after,
            None => self.changes.push(change),
        }
    }

    /// How many records changed.
    pub(super) const fn changed_records(&self) -> usize {
        self.changes.len()
    }

    fn place(&mut self, change: &Change) -> Option<usize> {
        let same = |known: &Change| known.table == change.table && known.key == change.key;
        if self.changes.len() <= FEW {
            return self.changes.iter().position(same);
        }
        for (at, known) in self.changes.iter().enumerate().skip(self.places.len()) {
            self.places.insert((known.table, known.key.clone()), at);
        }
        self.places.get(&(change.table, change.key.clone())).copied()
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// What each number in `table` whose key begins with `prefix` was before the write first changed it.
    pub(super) fn first_numbers<'u>(
        &'u self,
        table: Table,
        prefix: &[u8],
    ) -> impl Iterator<Item = (&'u [u8], u64)> {
        let mut first = Vec::<(&[u8], u64)>::new();
        for note in self.notes.iter().filter(|note| note.table == table) {
            if let Before::Number(number) = note.before
                && note.key.starts_with(prefix)
                && first.iter().all(|(known, _)| *known != note.key)
            {
                first.push((&note.key, number));
            }
        }
        first.into_iter()
    }

    pub(super) fn wrote_anything(&self) -> bool {
        !self.notes.is_empty()
    }

    /// The notes, last first: the order in which to take them back.
    pub(super) fn into_notes(self) -> impl Iterator<Item = Note> {
        self.notes.into_iter().rev()
    }
}
