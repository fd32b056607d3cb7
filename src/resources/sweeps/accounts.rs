//! What ends when an account is taken over by whoever proved its address.

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::resources::api_keys;
use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::store::{Tx, WriteTx};

use super::{remove_organization, sweep_removed_member};

/// How many memberships one transaction ends at the most.
const MEMBERSHIPS_AT_ONCE: usize = 20;

/// Whether ending an account takes more than one transaction before its new owner can join `organization`.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn ends_in_pieces(tx: &impl Tx, organization: OrganizationId, user: UserId) -> Result<bool> {
    let memberships = tx.keys(&members::BY_USER, &user, MEMBERSHIPS_AT_ONCE + 1)?.len();
    Ok(memberships > MEMBERSHIPS_AT_ONCE
        || members::find(tx, organization, user)?.is_some()
        || members::is_ending(tx, organization, user)?)
}

/// Ends an account for whoever used it: all of its keys, and as many memberships as one transaction ends. What they
/// were granted in `organization`, which the new owner of the account joins, is removed too, a piece at a time; in
/// other organizations that is left to the sweeper. An organization that is left without any member is removed: nobody
/// could reach it. Returns whether memberships are left; without a key the account gets no more of them.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn end_account(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
) -> Result<bool> {
    for key in tx.keys(&members::BY_USER, &user, MEMBERSHIPS_AT_ONCE)? {
        let member: Membership = tx.get(&key)?;
        let is_alone = members::is_alone(tx, &member)?;
        members::end(tx, member.organization, user)?;
        // One that is removed already is the sweeper's.
        if is_alone && tx.exists::<Organization>(&member.organization)? {
            remove_organization(tx, member.organization)?;
        }
    }
    // The activity log is led by what was removed first: the memberships.
    api_keys::remove_all(tx, user)?;
    if members::is_ending(tx, organization, user)? {
        sweep_removed_member(tx, organization, user)?;
    }
    Ok(!tx.keys(&members::BY_USER, &user, 1)?.is_empty())
}
