//! Maintained sums over the records of a tenant, stored beside the counts.
//!
//! The amount of a record may depend on other records that it refers to. The store updates the sum when the
//! record itself is written or deleted. Code that changes a record it refers to must call
//! [`WriteTx::adjust`](crate::store::write::WriteTx::adjust).

use crate::error::Result;
use crate::store::values::key::Key;
use crate::store::values::raw::{Raw, read_number};
use crate::store::values::schema::Table;

use super::{Record, Row, Tx};

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
    pub(in crate::store) fn summand(&self, tx: &dyn Raw, payload: &[u8]) -> Result<Summand> {
        let (tenant, amount) = (self.of)(tx, &Row::read(payload)?)?;
        Ok((self.key(&tenant), amount))
    }

    /// Returns the sum of a tenant.
    pub fn read(&self, tx: &impl Tx, tenant: &impl Key) -> Result<u64> {
        read_number(tx, Table::Counts, &self.key(&tenant.encoded()))
    }

    /// Returns the key of a tenant's sum in [`Table::Counts`].
    pub(in crate::store) fn key(&self, tenant: &[u8]) -> Vec<u8> {
        let mut key = self.name.to_owned().encoded();
        key.extend_from_slice(tenant);
        key
    }
}
