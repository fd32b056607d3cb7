//! Cascading deletion. Deleting an organization or a project hides it at once; a background task then deletes its
//! records, a limited number in each transaction. The permissions of a removed member, and of a deleted role, are deleted
//! in the same way.

use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::projects::{self, Project};
use crate::resources::roles::PendingListing;
use crate::resources::shared::import_mark::{self, ImportMark};
use crate::resources::shared::prelude::*;
use crate::resources::users::{Profile, UnverifiedAccount, User};
use crate::resources::{organizations, records, roles};

/// The maximum number of records that one transaction deletes.
const DELETE_BATCH: usize = 500;

/// Removes a member and deletes the member's permissions and invites. If they exceed one transaction, the background
/// task deletes the rest; without a membership they have no effect and no list shows them.
///
/// # Errors
/// The same as [`members::remove`].
pub fn delete_member(tx: &mut WriteTx<'_>, caller: &Membership, user: UserId) -> Result<()> {
    members::remove(tx, caller, user)?;
    roles::leave_all(tx, caller.organization, user)?;
    delete_first_batch(tx, PendingDeletion::Member(caller.organization, user))
}

/// Deletes a role, its memberships and the access controls that name it. If they exceed one transaction, the background
/// task deletes the rest; without the role they have no effect and no list shows them.
///
/// # Errors
/// 404 if the role does not exist.
pub fn delete_role(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    role: RoleId,
    now: Timestamp,
) -> Result<()> {
    roles::delete(tx, (organization, role), now)?;
    let pending = PendingDeletion::Role(organization, role);
    tx.put(&pending)?;
    delete_first_batch(tx, pending)
}

/// Deletes one batch of the records that a deleted parent left, and completes the deletion if it was the last one.
fn delete_first_batch(tx: &mut WriteTx<'_>, parent: PendingDeletion) -> Result<()> {
    if delete_records(tx, parent, DELETE_BATCH)? < DELETE_BATCH {
        tx.remove::<PendingDeletion>(&parent.key())?;
    }
    Ok(())
}

/// Deletes a project. The background task deletes its records.
///
/// # Errors
/// 404 if the project does not exist.
pub fn delete_project(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
) -> Result<()> {
    projects::delete(tx, organization, project)?;
    tx.put(&PendingDeletion::Project(organization, project))
}

/// Deletes an organization. The background task deletes its records.
///
/// # Errors
/// 404 if the organization does not exist.
pub fn delete_organization(tx: &mut WriteTx<'_>, organization: OrganizationId) -> Result<()> {
    organizations::delete(tx, organization)?;
    tx.put(&PendingDeletion::Organization(organization))
}

/// Returns the deleted projects of an organization whose records are not all deleted yet. Lists over all projects of an
/// organization must leave their records out.
pub fn pending_projects(tx: &dyn Raw, organization: OrganizationId) -> Result<Vec<ProjectId>> {
    collect::<PendingDeletion, _, _>(tx, &organization, |pending| match pending {
        PendingDeletion::Project(_, project) => Some(project),
        _ => None,
    })
}

/// Deletes one batch of records. Returns whether there may be more. Leaves out organizations whose import is not complete.
///
/// The deletions run from the end of the table: removed members, then projects, then the organization, then deleted roles,
/// whose records are gone by then if the organization is. The records of projects must be deleted before the members that they refer to.
pub fn delete_batch(tx: &mut WriteTx<'_>) -> Result<bool> {
    delete_up_to(tx, DELETE_BATCH)
}

/// Deletes like [`delete_batch`], but at most `limit` records that are not projects.
pub fn delete_up_to(tx: &mut WriteTx<'_>, limit: usize) -> Result<bool> {
    let mut next = None;
    let last = Window { offset: 0, limit: 1, order: Order::Descending };
    let arriving = import_mark::under_way(tx)?;
    let is_due = |parent: &PendingDeletion| !arriving.contains(&parent.organization());
    tx.scan_where::<PendingDeletion, _>(&(), last, is_due, |row| {
        next = Some(row.meta);
        Ok(())
    })?;
    let Some(parent) = next else { return delete_accounts(tx, &arriving) };
    let deleted = match parent {
        PendingDeletion::Organization(id) => delete_projects(tx, id)?,
        PendingDeletion::Project(..) | PendingDeletion::Member(..) | PendingDeletion::Role(..) => 0,
    };
    if deleted == 0 && delete_records(tx, parent, limit)? == 0 {
        tx.remove::<PendingDeletion>(&parent.key())?;
    }
    Ok(true)
}

/// Deletes projects of a deleted organization, and returns their number. Later batches delete their records, and then
/// the other records of the organization.
fn delete_projects(tx: &mut WriteTx<'_>, organization: OrganizationId) -> Result<usize> {
    // Each project has two records.
    let window = Window { offset: 0, limit: DELETE_BATCH / 2, order: Order::Ascending };
    let mut ids = Vec::new();
    tx.scan::<Project, _>(&organization, window, |row| {
        ids.push(row.meta.id);
        Ok(())
    })?;
    for id in &ids {
        delete_project(tx, organization, *id)?;
    }
    Ok(ids.len())
}

/// Deletes up to `limit` records that a deleted parent left, and returns how many it deleted. A record is deleted only
/// after all records that refer to it.
fn delete_records(tx: &mut WriteTx<'_>, parent: PendingDeletion, limit: usize) -> Result<usize> {
    let mut left = limit;
    for record in records().rev() {
        left -= record.deletes().run(tx, parent, left)?;
    }
    Ok(limit - left)
}

/// The maximum number of memberships that one transaction deletes.
const MEMBERSHIPS_PER_BATCH: usize = 20;
/// The number of role memberships after which a transaction deletes no further membership.
const ROLES_PER_BATCH: usize = 500;

/// Returns whether it takes more than one transaction to delete an account's memberships and permissions before its new
/// owner can join `organization`.
pub fn needs_batches(tx: &dyn Raw, organization: OrganizationId, user: UserId) -> Result<bool> {
    let memberships = tx.keys(&members::BY_USER, &user, MEMBERSHIPS_PER_BATCH + 1)?;
    Ok(first_batch(tx, user)?.len() < memberships.len()
        || members::find(tx, organization, user)?.is_some()
        || members::is_pending_deletion(tx, organization, user)?)
}

/// Returns the keys of the memberships that one transaction deletes: at least one, if there is any.
fn first_batch(tx: &dyn Raw, user: UserId) -> Result<Vec<(OrganizationId, UserId)>> {
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

/// The maximum number of accounts that one transaction deletes.
const ACCOUNTS_PER_BATCH: usize = 50;

/// The maximum number of marks that one transaction deletes.
const MARKS_PER_BATCH: usize = 500;

/// Deletes marks of accounts, and the accounts themselves if their import failed. Returns whether there may be more.
fn delete_accounts(tx: &mut WriteTx<'_>, arriving: &[OrganizationId]) -> Result<bool> {
    let is_done = |organization: OrganizationId| !arriving.contains(&organization);
    let accounts = import_mark::accounts(tx, &true, ACCOUNTS_PER_BATCH, is_done)?;
    for (organization, user) in &accounts {
        if !tx.exists::<Organization>(organization)? {
            delete_unused(tx, *user)?;
        }
        let mark = ImportMark::Account { organization: *organization, user: *user };
        tx.remove::<ImportMark>(&mark.key())?;
    }
    Ok(!accounts.is_empty())
}

/// Deletes marks of the accounts that a completed import of the organization created. Returns whether there may be more.
pub fn forget_accounts(tx: &mut WriteTx<'_>, organization: OrganizationId) -> Result<bool> {
    Ok(tx.remove_some::<ImportMark>(&(true, organization), MARKS_PER_BATCH)? > 0)
}

/// Deletes an account, unless its user has joined an organization.
fn delete_unused(tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
    if !tx.keys(&members::BY_USER, &user, 1)?.is_empty() {
        return Ok(());
    }
    for record in records().rev() {
        record.delete_with_account(tx, user)?;
    }
    tx.remove::<PendingListing>(&user)?;
    tx.remove::<UnverifiedAccount>(&user)?;
    tx.remove::<Profile>(&user)?;
    tx.remove::<User>(&user).map(drop)
}
