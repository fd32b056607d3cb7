//! Ranks: where the row at a position of a long list is, so that a page far from the start needs no walk over all rows
//! before it.
//!
//! The rows of a large tenant's list are divided into buckets of at most 512 rows, and the buckets into groups of at
//! most 512 buckets. [`Table::Ranks`] holds the first key and the size of each bucket and group. A deep page adds up
//! groups, then the buckets of one group, and skips fewer than 512 rows.
//!
//! Ranks are derived from the lists. They are updated in the transaction that changes a list, after the changes.
//! A background task builds the ranks of a tenant whose list becomes large, some rows in each transaction. Backups and
//! exports leave them out. A list without complete ranks is walked from its start.

mod build;
mod changes;
mod check;
mod layout;
mod rows;
mod seek;
#[cfg(test)]
mod tests;
mod update;

pub(super) use build::find_due;
pub(super) use changes::{ChangedRow, RankChanges};
pub(super) use check::{check, check_value};
pub(super) use layout::{State, state};
pub(super) use seek::start_of_walk;
pub(super) use update::RankWriter;

use crate::error::Result;

use super::schema::{Table, count_key};

/// Returns whether a list shows the row with this payload.
type ShowsRow = fn(&[u8]) -> Result<bool>;

/// A list with ranks. Its rows are the values of one table that begin with the key of a tenant.
pub struct RankedList {
    /// The table that the list walks.
    table: Table,
    /// The table of the records. Its maintained count of a tenant is the number of rows in the list.
    counted: Table,
    /// The size in bytes of the encoded tenant.
    tenant_size: usize,
    /// `None` if the list shows every row of the table.
    shows: Option<ShowsRow>,
    limits: Limits,
}

/// The sizes from which ranks are kept and divided.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The number of rows from which a tenant gets ranks.
    build_from: u64,
    /// The number of rows below which a tenant loses its ranks.
    keep_from: u64,
    /// The maximum size of a bucket or a group. A larger one is divided into parts of about half this size.
    max_parts: u64,
    /// The smallest offset that uses ranks. Walking over fewer rows is cheaper.
    min_skip: usize,
    /// How many rows of the table one transaction visits to build ranks.
    rows_per_build: usize,
}

impl Limits {
    const DEFAULT: Self = Self {
        build_from: 2048,
        keep_from: 1024,
        max_parts: 512,
        min_skip: 256,
        rows_per_build: 2048,
    };
}

impl RankedList {
    /// Creates a list that shows every row of `table`, an index. `counted` is the table of the records, and
    /// `tenant_size` the size in bytes of an encoded tenant.
    pub const fn of_index(table: Table, counted: Table, tenant_size: usize) -> Self {
        Self { table, counted, tenant_size, shows: None, limits: Limits::DEFAULT }
    }

    /// Creates a list that shows the records of `table` for whose payload `shows` returns true.
    pub const fn of_records(table: Table, tenant_size: usize, shows: ShowsRow) -> Self {
        let shows = Some(shows);
        Self { table, counted: table, tenant_size, shows, limits: Limits::DEFAULT }
    }

    /// Returns the table that the list walks.
    pub(super) const fn table(&self) -> Table {
        self.table
    }

    /// Returns the key of the number of rows of a tenant, in [`Table::Counts`].
    pub(super) fn count_key(&self, tenant: &[u8]) -> Vec<u8> {
        count_key(self.counted, tenant)
    }

    /// Whether ranks in this state, of a tenant with `count` rows, are to be built.
    pub(super) fn is_due(&self, state: Option<&State>, count: u64) -> bool {
        match state {
            Some(state) => *state != State::Complete,
            None => count >= self.limits.build_from,
        }
    }

    /// Returns the tenant of a row.
    fn tenant_of<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.get(..self.tenant_size)
    }
}
