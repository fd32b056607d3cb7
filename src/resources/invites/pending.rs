//! The limit on pending invites, and the deletion of a former member's invites.

use std::ops::ControlFlow;

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::ids::{InviteId, OrganizationId, UserId};
use crate::store::{Order, Tx, Window, WriteTx};

use super::{BY_SERIAL, Invite, delete};

/// The number of oldest invites that are searched for expired ones.
const MAX_SCANNED: usize = 100;

/// Checks that an organization may have one more invite. If the limit is reached, deletes the oldest expired invites,
/// which lists show until then.
///
/// # Errors
/// 400 `limit_reached` if the organization has the maximum number of pending invites.
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
        delete(tx, (organization, id))?;
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
    let oldest = Window { offset: 0, limit: MAX_SCANNED, order: Order::Ascending };
    let mut expired = Vec::new();
    tx.walk(&BY_SERIAL, &organization, oldest, |row| {
        if row.meta.has_ended(now) {
            expired.push(row.meta.id);
        }
        Ok(())
    })?;
    Ok(expired)
}

/// Deletes up to `limit` invites that a user created in an organization, with their unsent mails. Returns how many it
/// deleted.
pub(super) fn delete_created_by(
    tx: &mut WriteTx<'_>,
    (organization, user): (OrganizationId, UserId),
    limit: usize,
) -> Result<usize> {
    let mut created = Vec::new();
    tx.walk_until(&BY_SERIAL, &organization, 0, Order::Ascending, |row| {
        if created.len() == limit {
            return Ok(ControlFlow::Break(()));
        }
        if row.meta.created_by == Some(user) {
            created.push(row.meta.id);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    created.iter().try_for_each(|id| delete(tx, (organization, *id)))?;
    Ok(created.len())
}
