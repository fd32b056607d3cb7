//! How many bytes the records of each tenant take: maintained sums, kept beside the counts.
//!
//! A record counts with its key, its payload and its checksum. Index entries and the free space inside
//! redb's pages are not counted.

use std::ops::ControlFlow;

use uuid::Uuid;

use crate::error::Result;

use super::key::Key;
use super::read::{Raw, Tx, read_number};
use super::record::{CHECKSUM, damaged};
use super::schema::Table;
use super::snapshot::Snapshot;
use super::window::Order;

/// The tenant that the bytes of a record count to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// An organization, by its id.
    Organization(Uuid),
    /// A user, by their UUID: what they store outside organizations. For a reply to a request without a key, the id
    /// under which the reply is kept.
    Requester(Uuid),
}

/// What the keys of the sums of bytes in [`Table::Counts`] begin with. No table and no other sum has this name.
const SUMS: &str = "bytes";
const ORGANIZATION: u8 = 0;
const REQUESTER: u8 = 1;

impl Owner {
    /// Where the owner's sum is kept in [`Table::Counts`].
    pub(super) fn key(self) -> Vec<u8> {
        let (kind, id) = match self {
            Self::Organization(id) => (ORGANIZATION, id),
            Self::Requester(id) => (REQUESTER, id),
        };
        let mut key = SUMS.to_owned().encoded();
        kind.write(&mut key);
        key.extend_from_slice(id.as_bytes());
        key
    }

    /// How many bytes its records take, by the maintained sum. Inside a write this does not include what the
    /// write itself adds.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn stored_bytes(self, tx: &impl Tx) -> Result<u64> {
        read_number(tx, Table::Counts, &self.key())
    }

    /// Hands the sum of each organization that has records to `visit`.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn each_organization(tx: &Snapshot, mut visit: impl FnMut(u64)) -> Result<()> {
        let mut prefix = SUMS.to_owned().encoded();
        ORGANIZATION.write(&mut prefix);
        tx.raw_walk(Table::Counts, &prefix, 0, Order::Ascending, &mut |_, mut number| {
            visit(u64::read(&mut number).ok_or_else(|| damaged(Table::Counts, &"no number"))?);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The organization of the record under `key`, if there is one, in a table whose heads begin with their
    /// organization.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn leading(tx: &impl Tx, table: Table, key: &impl Key) -> Result<Option<Self>> {
        let mut found = None;
        tx.raw_get(table, &key.encoded(), &mut |payload| {
            let read = postcard::take_from_bytes::<(u64, Uuid)>(payload);
            let ((_, id), _) = read.map_err(|error| damaged(table, &error))?;
            found = Some(Self::Organization(id));
            Ok(())
        })?;
        Ok(found)
    }
}

/// How many bytes of an owner a record takes whose key and payload have these lengths.
pub(super) fn size(key: &[u8], payload: &[u8]) -> u64 {
    (key.len() + CHECKSUM + payload.len()) as u64
}

/// By how many bytes one write changes what each owner has.
#[derive(Debug, Default)]
pub(super) struct Growth {
    owned: Vec<(Owner, i64)>,
    total: i64,
}

impl Growth {
    /// Adds a change of `bytes`, which is negative where a record went or became smaller.
    pub(super) fn add(&mut self, owner: Option<Owner>, bytes: i64) {
        self.total += bytes;
        let Some(owner) = owner else { return };
        match self.owned.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, sum)) => *sum += bytes,
            None => self.owned.push((owner, bytes)),
        }
    }

    /// What each owner has more, or less where it is negative.
    pub(super) fn owned(&self) -> &[(Owner, i64)] {
        &self.owned
    }

    /// The change of all records together, with those that no owner has.
    pub(super) fn total(&self) -> i64 {
        self.total
    }
}
