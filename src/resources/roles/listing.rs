//! Whether lists show the role memberships of a user: if the user is enabled. When an operator enables or disables a user,
//! several transactions may be needed. Each role changes with its list, its count and its version in one of them.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::resources::members::{self, Membership};
use crate::resources::users::User;
use crate::store::{Order, Record, Reference, Tx, Window, WriteTx, impl_record};

use super::memberships::{BY_USER, RoleMembership};
use super::{Role, exists};

/// The maximum number of role memberships that one transaction shows or hides.
const LISTING_BATCH: usize = 500;

/// A user that was enabled or disabled, and whose role memberships do not all follow yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingListing {
    /// The id of the user.
    pub user: UserId,
    /// The first organization whose role memberships may not follow yet.
    pub next: OrganizationId,
}

impl_record!(PendingListing {
    table: PendingListings,
    key: |pending| -> UserId { pending.user },
    reuses_keys: true,
    owner: |_, _| Ok(None),
    references: |pending| [Reference::to::<User>(&pending.user)],
});

/// Shows a user's role memberships in lists if lists show the user's memberships, and hides them otherwise. If they
/// exceed one transaction, [`continue_listing`] completes it.
pub fn set_listed(tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
    update_batch(tx, PendingListing { user, next: OrganizationId(Uuid::nil()) })
}

/// Shows or hides one batch of role memberships of a user that was enabled or disabled. Returns whether there may be
/// more.
pub fn continue_listing(tx: &mut WriteTx<'_>) -> Result<bool> {
    let mut next = None;
    let first = Window { offset: 0, limit: 1, order: Order::Ascending };
    tx.scan::<PendingListing, _>(&(), first, |row| {
        next = Some(row.meta);
        Ok(())
    })?;
    match next {
        Some(pending) => update_batch(tx, pending).map(|()| true),
        None => Ok(false),
    }
}

fn update_batch(tx: &mut WriteTx<'_>, pending: PendingListing) -> Result<()> {
    let (outdated, rest) = find_outdated(tx, pending)?;
    for mut member in outdated {
        member.listed = !member.listed;
        tx.put(&member)?;
        if exists(tx, member.organization, member.role)? {
            tx.bump_version::<Role>(&(member.organization, member.role))?;
        }
    }
    match rest {
        Some(next) => tx.put(&PendingListing { next, ..pending }),
        None => tx.remove::<PendingListing>(&pending.key()).map(drop),
    }
}

/// Returns the first role memberships that do not follow the user's membership in their organization. Also returns the
/// organization to continue with if there may be more.
fn find_outdated(
    tx: &impl Tx,
    pending: PendingListing,
) -> Result<(Vec<RoleMembership>, Option<OrganizationId>)> {
    let PendingListing { user, next } = pending;
    let (mut outdated, mut rest) = (Vec::new(), None);
    tx.walk_from(&members::BY_USER, &user, &(user, next), |row| {
        let Membership { organization, listed, .. } = row.meta;
        let window =
            Window { offset: 0, limit: LISTING_BATCH - outdated.len(), order: Order::Ascending };
        let is_outdated = |member: &RoleMembership| member.listed != listed;
        tx.walk_where(&BY_USER, &(organization, user), window, is_outdated, |row| {
            outdated.push(row.meta);
            Ok(())
        })?;
        if outdated.len() < LISTING_BATCH {
            return Ok(ControlFlow::Continue(()));
        }
        rest = Some(organization);
        Ok(ControlFlow::Break(()))
    })?;
    Ok((outdated, rest))
}
