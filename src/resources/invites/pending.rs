//! How many invites of an organization are pending, and which of them end with their maker.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::ids::{InviteId, OrganizationId, UserId};
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::{BY_SERIAL, Invite, remove};

/// How many of the oldest invites are looked at for one that has expired.
const LOOKED_AT: usize = 100;

/// Lets an organization have one more invite. Expired invites are kept for lists to show while there is room;
/// then the oldest of them go.
///
/// # Errors
/// 400 `limit_reached` when as many are pending as may be.
pub(super) fn require_room(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    most: u64,
    now: Timestamp,
) -> Result<()> {
    if tx.count::<Invite>(&organization)? < most {
        return Ok(());
    }
    for id in oldest_expired(tx, organization, now)? {
        remove(tx, organization, id)?;
        if tx.count::<Invite>(&organization)? < most {
            return Ok(());
        }
    }
    Err(Error::limit_reached(format!(
        "An organization can have at most {most} pending invites. Delete one, or wait until one is accepted or expires."
    )))
}

fn oldest_expired(
    tx: &impl Tx,
    organization: OrganizationId,
    now: Timestamp,
) -> Result<Vec<InviteId>> {
    let oldest = Window { offset: 0, limit: LOOKED_AT, order: Order::Ascending };
    let mut expired = Vec::new();
    tx.walk(&BY_SERIAL, &organization, oldest, |row| {
        if row.head.is_expired(now) {
            expired.push(row.head.id);
        }
        Ok(())
    })?;
    Ok(expired)
}

/// Removes up to `limit` invites that a user made in an organization, and their mails that were not sent yet; returns
/// how many.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn remove_made_by(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
    limit: usize,
) -> Result<usize> {
    let mut made = Vec::new();
    tx.walk_until(&BY_SERIAL, &organization, 0, Order::Ascending, |row| {
        if made.len() == limit {
            return Ok(ControlFlow::Break(()));
        }
        if row.head.created_by == Some(user) {
            made.push(row.head.id);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    made.iter().try_for_each(|id| remove(tx, organization, *id))?;
    Ok(made.len())
}
