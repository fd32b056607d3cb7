//! How a membership ends.

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, UserId};
use crate::resources::organizations::Sweep;
use crate::store::{Order, Record, Tx, Window, WriteTx};

use super::{Membership, MembershipOrigin};

/// Ends a membership, and removes what is known of how it began. What the member was granted is left to the sweeper.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn end(tx: &mut WriteTx<'_>, organization: OrganizationId, user: UserId) -> Result<()> {
    let key = (organization, user);
    tx.remove::<Membership>(&key)?;
    tx.remove::<MembershipOrigin>(&key)?;
    tx.put(&Sweep::Member(organization, user))
}

/// Whether what a former member was granted in the organization has yet to be removed.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_ending(tx: &impl Tx, organization: OrganizationId, user: UserId) -> Result<bool> {
    tx.exists::<Sweep>(&Sweep::Member(organization, user).key())
}

/// Lets a user join an organization again only when nothing is left of a former membership.
pub(super) fn require_ended(
    tx: &impl Tx,
    organization: OrganizationId,
    user: UserId,
) -> Result<()> {
    if is_ending(tx, organization, user)? {
        return Err(Error::overloaded(1, "a former membership is still being removed"));
    }
    Ok(())
}

/// Whether the organization has no other member, listed or not.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_alone(tx: &impl Tx, member: &Membership) -> Result<bool> {
    let (mut members, two) = (0, Window { offset: 0, limit: 2, order: Order::Ascending });
    tx.scan::<Membership, _>(&member.organization, two, |_| {
        members += 1;
        Ok(())
    })?;
    Ok(members == 1)
}
