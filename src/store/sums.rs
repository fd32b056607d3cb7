//! Maintained sums over the records of a tenant, stored beside the counts.
//!
//! The amount of a record may depend on other records that it refers to. The store updates the sum when the
//! record itself is written or deleted. Code that changes a record it refers to must call
//! [`WriteTx::adjust`].

use std::collections::BTreeMap;

use crate::error::Result;

use super::byte_usage;
use super::key::Key;
use super::read::{Raw, Tx, read_number};
use super::record::{Record, Row, damaged};
use super::schema::Table;
use super::snapshot::Snapshot;
use super::write::WriteTx;

/// The encoded tenant whose sum a record adds to, and the amount.
pub type Summand = (Vec<u8>, u64);

/// A maintained sum over the records of type `R`, one for each tenant.
pub struct Sum<R: Record> {
    name: &'static str,
    of: fn(&dyn Raw, &Row<'_, R>) -> Result<Summand>,
}

impl<R: Record> Sum<R> {
    /// Creates the sum of the amounts that `of` returns. `name` must differ from the name of every other sum
    /// and every table, because counts use the names of their tables.
    pub const fn per(name: &'static str, of: fn(&dyn Raw, &Row<'_, R>) -> Result<Summand>) -> Self {
        Self { name, of }
    }

    /// Returns the key of the sum that a record adds to, and the amount.
    pub(super) fn summand(&self, tx: &dyn Raw, payload: &[u8]) -> Result<Summand> {
        let (tenant, amount) = (self.of)(tx, &Row::read(payload)?)?;
        Ok((sum_key(self.name, &tenant), amount))
    }

    /// Returns the sum of a tenant.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn read(&self, tx: &impl Tx, tenant: &impl Key) -> Result<u64> {
        read_number(tx, Table::Counts, &sum_key(self.name, &tenant.encoded()))
    }
}

/// Returns the key of a tenant's sum in [`Table::Counts`].
fn sum_key(name: &str, tenant: &[u8]) -> Vec<u8> {
    let mut key = name.to_owned().encoded();
    key.extend_from_slice(tenant);
    key
}

/// The counts and sums that follow from the records, by their keys.
#[derive(Default)]
pub struct Counts(pub(super) BTreeMap<Vec<u8>, u64>);

impl Counts {
    /// Adds the contribution of one record. A record that it refers to and that cannot be read adds nothing:
    /// `check` reports that record's damage separately.
    pub(super) fn add<R: Record>(&mut self, tx: &Snapshot, key: &[u8], payload: &[u8], record: &R) {
        let counted = R::COUNTS.iter().filter_map(|count| Some((count.key(record)?, 1)));
        let summed = R::SUMS.iter().filter_map(|sum| sum.summand(tx, payload).ok());
        let owner = record.owner(tx).ok().flatten();
        let stored = owner.map(|owner| (owner.key(), byte_usage::size(key, payload)));
        for (key, adds) in counted.chain(summed).chain(stored) {
            *self.0.entry(key).or_default() += adds;
        }
    }
}

impl WriteTx<'_> {
    /// Changes a tenant's sum from `before` to `after`, because a record that a summed record refers to was
    /// changed.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read or written.
    pub fn adjust<R: Record>(
        &mut self,
        sum: &Sum<R>,
        tenant: &impl Key,
        before: u64,
        after: u64,
    ) -> Result<()> {
        self.move_sum(&sum_key(sum.name, &tenant.encoded()), before, after)
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
        match sum.checked_add(after).and_then(|sum| sum.checked_sub(before)) {
            None => Err(damaged(Table::Counts, &"a record exists that no sum includes")),
            Some(sum) => self.set_number(Table::Counts, key, sum),
        }
    }
}
