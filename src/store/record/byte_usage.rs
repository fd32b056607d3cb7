//! How many bytes the records of each tenant take: maintained sums, stored beside the counts.
//!
//! The size of a record includes its key, its payload and its checksum. It does not include index entries and
//! the free space inside redb's pages.

use std::ops::ControlFlow;

use uuid::Uuid;

use crate::base::error::Result;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::key::Key;
use crate::store::values::payload::{CHECKSUM, Payload, damaged};
use crate::store::values::raw::{Order, Raw, number_in, read_number, read_value};
use crate::store::values::schema::Table;

/// The tenant that a record's bytes count towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// The id of an organization.
    Organization(Uuid),
    /// The UUID of a user, for what they store outside organizations. For a stored response to a request
    /// without an API key, the id under which the response is stored.
    Requester(Uuid),
}

/// The prefix of the keys of byte sums in [`Table::Counts`]. No table and no other sum has this name.
const SUM_NAME: &str = "bytes";
const ORGANIZATION: u8 = 0;
const REQUESTER: u8 = 1;

impl Owner {
    /// Returns the key of the owner's sum in [`Table::Counts`].
    pub(in crate::store) fn key(self) -> Vec<u8> {
        let (kind, id) = match self {
            Self::Organization(id) => (ORGANIZATION, id),
            Self::Requester(id) => (REQUESTER, id),
        };
        let mut key = SUM_NAME.to_owned().encoded();
        kind.write(&mut key);
        key.extend_from_slice(id.as_bytes());
        key
    }

    /// Returns how many bytes the owner's records take.
    pub fn stored_bytes(self, tx: &impl Raw) -> Result<u64> {
        read_number(tx, Table::Counts, &self.key())
    }

    /// Calls `visit` with the sum of each organization that has records.
    pub fn each_organization(tx: &Snapshot, mut visit: impl FnMut(u64)) -> Result<()> {
        let mut prefix = SUM_NAME.to_owned().encoded();
        ORGANIZATION.write(&mut prefix);
        tx.raw_walk(Table::Counts, &prefix, 0, Order::Ascending, &mut |_, payload| {
            visit(number_in(Table::Counts, payload)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Returns the organization of the record under `key`, if the record exists. The metadata of the
    /// records in `table` must begin with the id of their organization.
    pub fn leading(tx: &dyn Raw, table: Table, key: &impl Key) -> Result<Option<Self>> {
        read_value(tx, table, &key.encoded(), &|payload| {
            let stored = Payload::read(table, payload)?;
            let id = postcard::take_from_bytes(stored.meta);
            let (id, _) = id.map_err(|error| damaged(table, &error))?;
            Ok(Self::Organization(id))
        })
    }
}

/// The size of a record with this key and payload, checksum included.
pub(in crate::store) fn size(key: &[u8], payload: &[u8]) -> u64 {
    (key.len() + CHECKSUM + payload.len()) as u64
}

/// By how many bytes one write changes the sum of each owner.
#[derive(Debug, Default)]
pub(in crate::store) struct Growth {
    /// The change of each owner's bytes; negative if the owner stores less.
    pub(in crate::store) by_owner: Vec<(Owner, i64)>,
    /// The change over all records, including records without an owner.
    pub(in crate::store) total: i64,
}

impl Growth {
    /// Adds a change of `bytes`, which is negative if a record was deleted or became smaller.
    pub(in crate::store) fn add(&mut self, owner: Option<Owner>, bytes: i64) {
        self.total += bytes;
        let Some(owner) = owner else { return };
        match self.by_owner.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, sum)) => *sum += bytes,
            None => self.by_owner.push((owner, bytes)),
        }
    }
}
