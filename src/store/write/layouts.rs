//! Layouts of records: which one a table has, and storing older records again.

use std::ops::ControlFlow;

use crate::error::Result;

use super::super::key::Key;
use super::super::payload::Payload;
use super::super::raw::{Raw, read_number};
use super::super::record::{Record, Row, Tx, completed};
use super::super::schema::{Table, layout_key};
use super::super::window::Order;
use super::WriteTx;

/// How many records are stored again before their previous values are forgotten.
const UPGRADE_BATCH: usize = 1000;

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
            self.put_raw(Table::Meta, &key, &layout.encoded())?;
        }
        Ok(())
    }

    /// Stores every record of an older layout in the current one, with the version that it has. Returns the
    /// number of these records. Only the whole transaction can undo it, so it needs one of its own.
    pub(in crate::store) fn upgrade_all<R: Record>(&mut self) -> Result<u64> {
        if R::ADDED.is_empty() {
            return Ok(0);
        }
        let (mut upgraded, mut from) = (0, Vec::new());
        loop {
            let older = self.older_records::<R>(&from)?;
            let Some(last) = older.last() else { return Ok(upgraded) };
            from.clone_from(last);
            from.push(0);
            for key in &older {
                self.upgrade::<R>(key)?;
            }
            upgraded += older.len() as u64;
            self.savepoint()?;
        }
    }

    /// Returns the first keys, from `from` on, of records of an older layout.
    fn older_records<R: Record>(&self, from: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut older = Vec::new();
        self.raw_between(R::TABLE, (from, None), 0, Order::Ascending, &mut |key, payload| {
            if Payload::read(R::TABLE, payload)?.layout < R::ADDED.len() {
                older.push(key.to_vec());
            }
            Ok(match older.len() {
                UPGRADE_BATCH => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })?;
        Ok(older)
    }

    fn upgrade<R: Record>(&mut self, key: &[u8]) -> Result<()> {
        let Some(before) = self.get_raw(R::TABLE, key)? else { return Ok(()) };
        let payload = completed::<R>(&before)?.into_owned();
        let record = Row::<R>::parse(&payload)?;
        self.replace(key.to_vec(), Some(before), Some(&record), &record, payload)
    }
}
