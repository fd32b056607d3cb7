//! Deletes old entries. Entries are kept forever unless the operator sets a retention time.

use std::ops::ControlFlow;

use uuid::Uuid;

use crate::error::Result;
use crate::ids::OrganizationId;
use crate::store::{Order, Record, Tx, WriteTx};
use crate::time::Timestamp;

use super::{Entry, NO_ORGANIZATION};

/// The maximum number of entries that one transaction deletes.
const DELETE_BATCH: usize = 500;

type EntryKey = <Entry as Record>::Key;

/// Returns the keys of entries older than `cutoff`, in all organizations. Returns at most as many keys as one
/// transaction deletes.
pub fn find_expired(tx: &impl Tx, cutoff: Timestamp) -> Result<Vec<EntryKey>> {
    let mut keys: Vec<EntryKey> = Vec::new();
    let mut from = (NO_ORGANIZATION, Timestamp::MIN);
    while let Some(organization) = organization_from(tx, from)? {
        let (begin, end) = ((organization, Timestamp::MIN), (organization, cutoff));
        tx.scan_between::<Entry, _>(&begin, &end, Order::Ascending, |row| {
            keys.push((row.meta.organization, row.meta.created_at, row.meta.id));
            Ok(if keys.len() < DELETE_BATCH {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        })?;
        if keys.len() == DELETE_BATCH {
            break;
        }
        from = (organization, Timestamp::MAX);
    }
    Ok(keys)
}

/// Returns the organization of the first entry at or after `from`.
fn organization_from(
    tx: &impl Tx,
    from: (OrganizationId, Timestamp),
) -> Result<Option<OrganizationId>> {
    let mut found = None;
    let last = (OrganizationId(Uuid::max()), Timestamp::MAX);
    tx.scan_between::<Entry, _>(&from, &last, Order::Ascending, |row| {
        found = Some(row.meta.organization);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Deletes the entries with these keys.
pub fn delete(tx: &mut WriteTx<'_>, keys: &[EntryKey]) -> Result<()> {
    keys.iter().try_for_each(|key| tx.remove::<Entry>(key).map(drop))
}
