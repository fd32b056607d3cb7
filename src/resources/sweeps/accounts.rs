//! What ends when an account is taken over by whoever proved its address.

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::{api_keys, invites};
use crate::store::{Order, Tx, Window, WriteTx};

use super::{remove_granted, remove_organization};

/// How many memberships one transaction ends at the most. Each takes along what the member was granted and
/// whom the member invited.
const MEMBERSHIPS_AT_ONCE: usize = 20;

/// Whether an account has more memberships than one transaction ends.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_large(tx: &impl Tx, user: UserId) -> Result<bool> {
    Ok(tx.keys(&members::BY_USER, &user, MEMBERSHIPS_AT_ONCE + 1)?.len() > MEMBERSHIPS_AT_ONCE)
}

/// Ends an account for whoever used it: all of its keys, and as many memberships as one transaction ends, with
/// what hangs on them. An organization that is left without any member is removed: nobody could reach it. Returns
/// whether memberships are left; without a key the account gets no more of them.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn end_account(tx: &mut WriteTx<'_>, user: UserId) -> Result<bool> {
    let ended = tx.keys(&members::BY_USER, &user, MEMBERSHIPS_AT_ONCE)?;
    for (organization, user) in ended {
        members::end(tx, organization, user)?;
        remove_granted(tx, organization, user)?;
        invites::remove_made_by(tx, organization, user)?;
        if !has_members(tx, organization)? {
            remove_organization(tx, organization)?;
        }
    }
    // The activity log is led by what was removed first: the memberships.
    api_keys::remove_all(tx, user)?;
    Ok(!tx.keys(&members::BY_USER, &user, 1)?.is_empty())
}

/// Whether an organization has a member, listed or not; true for one that is removed already, which the sweeper
/// deals with.
fn has_members(tx: &impl Tx, organization: OrganizationId) -> Result<bool> {
    let (mut any, one) = (false, Window { offset: 0, limit: 1, order: Order::Ascending });
    tx.scan::<Membership, _>(&organization, one, |_| {
        any = true;
        Ok(())
    })?;
    Ok(any || !tx.exists::<Organization>(&organization)?)
}
