//! The deletion of an account's keys and memberships when the owner of its address takes it over.

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::shared::pending_deletion::PendingDeletion;
use crate::resources::{records, roles};
use crate::store::{Tx, WriteTx};

use super::{delete_first_batch, delete_organization};

/// The maximum number of memberships that one transaction deletes.
const MEMBERSHIPS_PER_BATCH: usize = 20;
/// The number of role memberships after which a transaction deletes no further membership.
const ROLES_PER_BATCH: usize = 500;

/// Returns whether it takes more than one transaction to delete an account's memberships and permissions before its new
/// owner can join `organization`.
pub fn needs_batches(tx: &impl Tx, organization: OrganizationId, user: UserId) -> Result<bool> {
    let memberships = tx.keys(&members::BY_USER, &user, MEMBERSHIPS_PER_BATCH + 1)?;
    Ok(first_batch(tx, user)?.len() < memberships.len()
        || members::find(tx, organization, user)?.is_some()
        || members::is_pending_deletion(tx, organization, user)?)
}

/// Returns the keys of the memberships that one transaction deletes: at least one, if there is any.
fn first_batch(tx: &impl Tx, user: UserId) -> Result<Vec<(OrganizationId, UserId)>> {
    let (mut batch, mut in_roles) = (Vec::new(), 0);
    for key in tx.keys(&members::BY_USER, &user, MEMBERSHIPS_PER_BATCH)? {
        in_roles += roles::count_of_user(tx, key.0, user, ROLES_PER_BATCH)?;
        if in_roles > ROLES_PER_BATCH && !batch.is_empty() {
            break;
        }
        batch.push(key);
    }
    Ok(batch)
}

/// Deletes all keys of an account, and as many memberships as fit in one transaction. Returns whether memberships, or
/// permissions in `organization`, remain; without a key the account cannot get new ones.
///
/// Permissions in `organization`, which the new owner joins, are deleted here, in several calls if necessary.
/// Permissions in other organizations are deleted in the background. An organization without any other member is
/// deleted.
pub fn delete_account_data(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
) -> Result<bool> {
    // The entries are about memberships: the deleted ones, and the one that the new owner gets.
    tx.log_about::<Membership>(&(organization, user));
    for key in first_batch(tx, user)? {
        let member: Membership = tx.get(&key)?;
        let is_alone = members::is_last_member(tx, &member)?;
        members::delete(tx, member.organization, user)?;
        roles::leave_all(tx, member.organization, user)?;
        // The organization may be deleted already, with its records still pending.
        if is_alone && tx.exists::<Organization>(&member.organization)? {
            delete_organization(tx, member.organization)?;
        }
    }
    for record in records().rev() {
        record.delete_with_account(tx, user)?;
    }
    if members::is_pending_deletion(tx, organization, user)? {
        delete_first_batch(tx, PendingDeletion::Member(organization, user))?;
    }
    Ok(!tx.keys(&members::BY_USER, &user, 1)?.is_empty()
        || members::is_pending_deletion(tx, organization, user)?)
}
