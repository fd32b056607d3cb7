//! Layouts of records: which one a table has, and storing older records again.

use crate::error::Result;
use crate::store::record::{Record, Row, Tx, completed};
use crate::store::values::key::Key;
use crate::store::values::raw::read_number;
use crate::store::values::schema::{Table, layout_key};

use super::WriteTx;

impl WriteTx<'_> {
    /// Notes in the file that `R::TABLE` has records of the current layout, so that an older release refuses
    /// the file.
    pub(super) fn note_layout<R: Record>(&mut self) -> Result<()> {
        let layout = R::ADDED.len() as u64;
        if layout == 0 {
            return Ok(());
        }
        let key = layout_key(R::TABLE);
        if read_number(self, Table::Meta, &key)? < layout {
            self.put_raw(Table::Meta, &key, &layout.encoded());
        }
        Ok(())
    }

    /// Stores these records in the current layout, with the versions that they have. Skips records that were deleted.
    pub(in crate::store) fn upgrade_all<R: Record>(&mut self, keys: &[Vec<u8>]) -> Result<()> {
        keys.iter().try_for_each(|key| self.upgrade::<R>(key))
    }

    fn upgrade<R: Record>(&mut self, key: &[u8]) -> Result<()> {
        let Some(before) = self.get_raw(R::TABLE, key)? else { return Ok(()) };
        let payload = completed::<R>(&before)?.into_owned();
        let record = Row::<R>::parse(&payload)?;
        self.replace(key.to_vec(), Some(before), Some(&record), &record, payload)
    }
}
