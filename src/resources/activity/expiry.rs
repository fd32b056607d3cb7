//! How long entries are kept: for ever, or as long as the operator says.

use std::ops::ControlFlow;

use uuid::Uuid;

use crate::error::Result;
use crate::ids::OrganizationId;
use crate::store::{Order, Record, Tx, WriteTx};
use crate::time::Timestamp;

use super::{Entry, NO_ORGANIZATION};

/// How many entries one transaction removes at the most.
const PIECE: usize = 500;

type EntryKey = <Entry as Record>::Key;

/// The keys of entries that were written before `cutoff`, in whatever organization: at most as many as one
/// transaction removes.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn due(tx: &impl Tx, cutoff: Timestamp) -> Result<Vec<EntryKey>> {
    let mut keys: Vec<EntryKey> = Vec::new();
    let mut from = (NO_ORGANIZATION, Timestamp::MIN);
    while let Some(organization) = organization_from(tx, from)? {
        let (begin, end) = ((organization, Timestamp::MIN), (organization, cutoff));
        tx.scan_between::<Entry, _>(&begin, &end, Order::Ascending, |row| {
            keys.push((row.head.organization, row.head.created_at, row.head.id));
            Ok(if keys.len() < PIECE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if keys.len() == PIECE {
            break;
        }
        from = (organization, Timestamp::MAX);
    }
    Ok(keys)
}

/// The organization of the first entry from here on.
fn organization_from(
    tx: &impl Tx,
    from: (OrganizationId, Timestamp),
) -> Result<Option<OrganizationId>> {
    let mut found = None;
    let last = (OrganizationId(Uuid::max()), Timestamp::MAX);
    tx.scan_between::<Entry, _>(&from, &last, Order::Ascending, |row| {
        found = Some(row.head.organization);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Removes these entries.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn expire(tx: &mut WriteTx<'_>, keys: &[EntryKey]) -> Result<()> {
    keys.iter().try_for_each(|key| tx.remove::<Entry>(key).map(drop))
}
