//! A write within its batch: kept or taken back, and whether others may follow.

use crate::error::Result;

use super::super::bytes::Growth;
use super::super::undo::{Before, Undo};
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
