//! Keeping the maintained sums up to date.

use crate::error::Result;
use crate::store::record::{Record, Sum};
use crate::store::values::checksum::damaged;
use crate::store::values::key::Key;
use crate::store::values::raw::read_number;
use crate::store::values::schema::Table;

use super::WriteTx;

impl WriteTx<'_> {
    /// Changes what a record adds to a tenant's sum from `before` to `after`, because a record that it refers to was
    /// changed.
    pub fn adjust<R: Record>(
        &mut self,
        sum: &Sum<R>,
        tenant: &impl Key,
        before: u64,
        after: u64,
    ) -> Result<()> {
        self.move_sum(&sum.key(&tenant.encoded()), before, after)
    }

    /// Updates the sums of a record whose payload changed from `before` to `after`.
    pub(super) fn resum<R: Record>(
        &mut self,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Result<()> {
        for sum in R::SUMS {
            let before = before.map(|payload| sum.summand(self, payload)).transpose()?;
            let after = after.map(|payload| sum.summand(self, payload)).transpose()?;
            match (before, after) {
                (Some((key, before)), Some((same, after))) if key == same => {
                    self.move_sum(&key, before, after)?;
                }
                (before, after) => {
                    if let Some((key, amount)) = before {
                        self.move_sum(&key, amount, 0)?;
                    }
                    if let Some((key, amount)) = after {
                        self.move_sum(&key, 0, amount)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn move_sum(&mut self, key: &[u8], before: u64, after: u64) -> Result<()> {
        if before == after {
            return Ok(());
        }
        let sum = read_number(self, Table::Counts, key)?;
        let moved = sum.checked_add(after).and_then(|sum| sum.checked_sub(before));
        let missing = || damaged(Table::Counts, &"a record exists that no sum includes");
        self.set_count(key, moved.ok_or_else(missing)?);
        Ok(())
    }
}
