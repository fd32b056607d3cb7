//! What [`Table::Ranks`] stores.
//!
//! The key of each value begins with the name of the list's table and the height. Then follows the tenant, or the first
//! key of a bucket or a group. The first bucket and the first group of a tenant begin at the tenant itself. A bucket
//! belongs to the group with the greatest key that is not greater than the key of the bucket.

use crate::error::Result;

use super::super::key::{Key, prefix_end};
use super::super::raw::Raw;
use super::super::schema::Table;
use super::super::sealed::damaged;
use super::RankedList;

/// What a value of [`Table::Ranks`] describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Height {
    /// Whether the ranks of a tenant are complete.
    Tenant = 0,
    /// A bucket of rows.
    Bucket = 1,
    /// A group of buckets.
    Group = 2,
}

/// Whether the ranks of a tenant are complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) enum State {
    /// Every row is in a bucket.
    Complete,
    /// The rows before this key are in buckets. Buckets and groups from this key on are not valid.
    Building(Vec<u8>),
}

impl State {
    /// Returns the payload: the key up to which the ranks are built, or nothing if they are complete.
    pub(in crate::store) fn payload(&self) -> &[u8] {
        match self {
            Self::Complete => &[],
            Self::Building(until) => until,
        }
    }

    pub(super) fn parse(payload: &[u8]) -> Self {
        if payload.is_empty() { Self::Complete } else { Self::Building(payload.to_vec()) }
    }

    /// Returns the end of the keys that are in buckets; `None` if that is the end of the table.
    pub(super) fn end(&self, tenant: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Complete => prefix_end(tenant),
            Self::Building(until) => Some(until.clone()),
        }
    }
}

/// Returns the state of a tenant's ranks; `None` if the tenant has none. If the state is damaged, the ranks are to be built
/// from the start.
pub(in crate::store) fn state(
    tx: &(impl Raw + ?Sized),
    list: &RankedList,
    tenant: &[u8],
) -> Result<Option<State>> {
    let mut found = None;
    let read = tx.raw_get(Table::Ranks, &list.key(Height::Tenant, tenant), &mut |payload| {
        found = Some(State::parse(payload));
        Ok(())
    });
    match read {
        Ok(()) => Ok(found),
        Err(error) if error.status() == 503 => Err(error),
        Err(error) => {
            tracing::error!(%error, "the ranks of a list are damaged");
            Ok(Some(State::Building(tenant.to_vec())))
        }
    }
}

/// A bucket or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    /// The first key of the list that belongs to it.
    pub(super) first: Vec<u8>,
    /// How many rows it has.
    pub(super) rows: u64,
    /// How many rows a bucket has, and how many buckets a group has.
    pub(super) parts: u64,
}

impl Span {
    /// Returns the bucket or group in a value of [`Table::Ranks`]. `key` begins after the height.
    pub(super) fn parse(key: &[u8], payload: &[u8]) -> Result<Self> {
        match <(u64, u64)>::read(&mut &*payload) {
            Some((rows, parts)) => Ok(Self { first: key.to_vec(), rows, parts }),
            None => Err(damaged(Table::Ranks, &"not the size of a bucket or a group")),
        }
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        (self.rows, self.parts).encoded()
    }
}

impl RankedList {
    /// Returns the key of the state of a tenant's ranks.
    pub(in crate::store) fn state_key(&self, tenant: &[u8]) -> Vec<u8> {
        self.key(Height::Tenant, tenant)
    }

    /// Returns the key of a value of this height.
    pub(super) fn key(&self, height: Height, key: &[u8]) -> Vec<u8> {
        // The bytes of a `String` key: the names of tables contain no NUL.
        [self.table.name().as_bytes(), &[0, 0, height as u8], key].concat()
    }

    /// Returns the range of the values of this height from `span.0` up to, but not including, `span.1`.
    pub(super) fn keys(
        &self,
        height: Height,
        (from, until): (&[u8], Option<&[u8]>),
    ) -> (Vec<u8>, Option<Vec<u8>>) {
        let until = match until {
            Some(until) => Some(self.key(height, until)),
            None => prefix_end(&self.key(height, &[])),
        };
        (self.key(height, from), until)
    }

    /// Returns the size of what [`key`](Self::key) puts before the key of the list.
    pub(super) const fn head_size(&self) -> usize {
        self.table.name().len() + 3
    }
}
