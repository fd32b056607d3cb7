//! Layouts of records: which one a table has.

use crate::error::Result;
use crate::store::record::Record;
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
}
