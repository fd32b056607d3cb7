//! Deletes memberships.

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, UserId};
use crate::resources::pending_deletion::PendingDeletion;
use crate::store::{Order, Record, Tx, Window, WriteTx};

use super::{Membership, MembershipOrigin};

/// Deletes a membership and its origin. Marks the member's permissions for deletion in later transactions.
pub fn delete(tx: &mut WriteTx<'_>, organization: OrganizationId, user: UserId) -> Result<()> {
    let key = (organization, user);
    tx.log_about::<Membership>(&key);
    tx.remove::<Membership>(&key)?;
    tx.remove::<MembershipOrigin>(&key)?;
    tx.put(&PendingDeletion::Member(organization, user))
}

/// Returns whether permissions of a former member are still being deleted.
pub fn is_pending_deletion(
    tx: &impl Tx,
    organization: OrganizationId,
    user: UserId,
) -> Result<bool> {
    tx.exists::<PendingDeletion>(&PendingDeletion::Member(organization, user).key())
}

/// Fails with 503 while permissions of a former membership of the user are being deleted.
pub(super) fn require_deletion_complete(
    tx: &impl Tx,
    organization: OrganizationId,
    user: UserId,
) -> Result<()> {
    if is_pending_deletion(tx, organization, user)? {
        return Err(Error::overloaded(1, "a former membership is still being removed"));
    }
    Ok(())
}

/// Returns whether the organization has no other member, including members that lists do not show.
pub fn is_last_member(tx: &impl Tx, member: &Membership) -> Result<bool> {
    let (mut members, two) = (0, Window { offset: 0, limit: 2, order: Order::Ascending });
    tx.scan::<Membership, _>(&member.organization, two, |_| {
        members += 1;
        Ok(())
    })?;
    Ok(members == 1)
}
