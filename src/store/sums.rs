//! Maintained sums: what the records of a tenant amount to, kept beside the counts.
//!
//! What a record adds may rest on records that it points at. The store moves the sum when the record itself is
//! written or removed; whoever changes what it points at moves it by [`WriteTx::adjust`].

use std::collections::BTreeMap;

use crate::error::Result;

use super::bytes;
use super::key::Key;
use super::read::{Raw, Tx, read_number};
use super::record::{Record, Row, damaged};
use super::schema::Table;
use super::snapshot::Snapshot;
use super::write::WriteTx;

/// What a record adds: the encoded tenant whose sum it adds to, and how much.
pub type Summand = (Vec<u8>, u64);

/// A maintained sum over the records of type `R`.
pub struct Sum<R: Record> {
    name: &'static str,
    of: fn(&dyn Raw, &Row<'_, R>) -> Result<Summand>,
}

impl<R: Record> Sum<R> {
    /// The sum of what `of` gives, by tenant. `name` tells it from other sums and from the counts, which have the
    /// names of their tables.
    pub const fn per(name: &'static str, of: fn(&dyn Raw, &Row<'_, R>) -> Result<Summand>) -> Self {
        Self { name, of }
    }

    /// The key of the sum that a record adds to, and how much it adds.
    pub(super) fn summand(&self, tx: &dyn Raw, payload: &[u8]) -> Result<Summand> {
        let (tenant, amount) = (self.of)(tx, &Row::read(payload)?)?;
        Ok((sum_key(self.name, &tenant), amount))
    }

    /// The sum of a tenant.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn read(&self, tx: &impl Tx, tenant: &impl Key) -> Result<u64> {
        read_number(tx, Table::Counts, &sum_key(self.name, &tenant.encoded()))
    }
}

/// Where the sum of this name is kept for a tenant.
pub(super) fn sum_key(name: &str, tenant: &[u8]) -> Vec<u8> {
    let mut key = name.to_owned().encoded();
    key.extend_from_slice(tenant);
    key
}

/// What the counts and the sums have to be by the records, under their keys.
#[derive(Default)]
pub struct Counts(pub(super) BTreeMap<Vec<u8>, u64>);

impl Counts {
    /// Adds what a record adds. What cannot be read of the records that it points at is damage of theirs.
    pub(super) fn add<R: Record>(&mut self, tx: &Snapshot, key: &[u8], payload: &[u8], record: &R) {
        let counted = R::COUNTS.iter().filter_map(|count| Some((count.key(record)?, 1)));
        let summed = R::SUMS.iter().filter_map(|sum| sum.summand(tx, payload).ok());
        let owner = record.owner(tx).ok().flatten();
        let stored = owner.map(|owner| (owner.key(), bytes::size(key, payload)));
        for (key, adds) in counted.chain(summed).chain(stored) {
            *self.0.entry(key).or_default() += adds;
        }
    }
}

impl WriteTx<'_> {
    /// Moves the sum of a tenant, because what a record points at added `before` and adds `after` now.
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

    /// Moves the sums that a record adds to, whose payload was `before` and is `after`.
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

    /// Adds to the sum under `key`.
    pub(super) fn add_to_sum(&mut self, key: &[u8], amount: u64) -> Result<()> {
        self.move_sum(key, 0, amount)
    }

    fn move_sum(&mut self, key: &[u8], before: u64, after: u64) -> Result<()> {
        if before == after {
            return Ok(());
        }
        let sum = read_number(self, Table::Counts, key)?;
        match sum.checked_add(after).and_then(|sum| sum.checked_sub(before)) {
            None => Err(damaged(Table::Counts, &"a record is there that no sum holds")),
            Some(sum) => self.set_number(Table::Counts, key, sum),
        }
    }
}
