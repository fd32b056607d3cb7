//! A write within its batch: kept or taken back, and whether others may follow.

use crate::error::{Error, Result};

use super::super::bytes::Growth;
use super::super::engine::RETRY_AFTER;
use super::super::undo::{Before, Change, Undo};
use super::WriteTx;

impl WriteTx<'_> {
    /// Ends the batch with this write, if it stays: the state that the commit leaves is then the state after this
    /// write. Call it when the answer is rendered from that state.
    pub const fn end_batch(&mut self) {
        self.ends_batch = true;
    }

    /// Whether the batch ends with the write under way.
    pub(in crate::store) const fn ends_batch(&self) -> bool {
        self.ends_batch
    }

    /// Begins a write that may change so many records.
    pub(in crate::store) const fn begin(&mut self, most_records: usize) {
        self.most_records = most_records;
    }

    /// Whether the write under way changed more records than it may, which ended it.
    pub(in crate::store) const fn is_too_large(&self) -> bool {
        self.records_changed() > self.most_records
    }

    /// Notes a change of a record, which fails if it is one too many.
    pub(super) fn changed(&mut self, change: Change) -> Result<()> {
        self.undo.changed(change);
        if self.is_too_large() {
            return Err(Error::overloaded(RETRY_AFTER, "a large write of a tenant that rests"));
        }
        Ok(())
    }

    /// How many records the write under way has changed.
    pub(in crate::store) const fn records_changed(&self) -> usize {
        self.undo.changed_records()
    }

    /// Keeps what was written and begins the notes of the next write.
    pub(in crate::store) fn keep(&mut self) -> Result<()> {
        self.require_whole()?;
        self.settle()?;
        self.undo = Undo::default();
        self.ends_batch = false;
        Ok(())
    }

    /// Takes back everything written since the last [`keep`](Self::keep).
    pub(in crate::store) fn take_back(&mut self) -> Result<()> {
        self.require_whole()?;
        self.growth = Growth::default();
        self.ends_batch = false;
        for note in std::mem::take(&mut self.undo).into_notes() {
            match note.before {
                Before::Sealed(sealed) => {
                    drop(self.swap(note.table, &note.key, sealed.as_deref())?);
                }
                Before::Number(number) => self.numbers.set(note.table, &note.key, number),
            }
        }
        Ok(())
    }
}
