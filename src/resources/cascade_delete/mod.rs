//! Cascading deletion. Deleting an organization or a project hides it at once; a background task then deletes its
//! records, a limited number in each transaction. The permissions of a removed member are deleted in the same way.

mod accounts;

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::resources::access_controls::rules::{self, AccessRule};
use crate::resources::activity::Entry;
use crate::resources::batch_exports::{self, BatchExport};
use crate::resources::collaborators::{self, Collaborator};
use crate::resources::dashboards::deletions::Deletion;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::dashboards::tiles::Tile;
use crate::resources::dashboards::{Dashboard, Details};
use crate::resources::domains::Domain;
use crate::resources::invites::{self, Invite};
use crate::resources::members::{self, Membership, MembershipOrigin};
use crate::resources::organizations;
use crate::resources::projects::grants::{self, Grant};
use crate::resources::projects::{self, Project};
use crate::resources::sharing::Sharing;
use crate::store::{Key, Order, Record, Reference, Snapshot, Table, Tx, Window, WriteTx};

pub use crate::resources::organizations::PendingDeletion;
pub use accounts::{delete_account_data, needs_batches};

/// The maximum number of records that one transaction deletes.
const DELETE_BATCH: usize = 500;

/// Removes a member and deletes the member's permissions and invites. If they exceed one transaction, the background
/// task deletes the rest; without a membership they have no effect and no list shows them.
///
/// # Errors
/// The same as [`members::remove`].
pub fn delete_member(tx: &mut WriteTx<'_>, caller: &Membership, user: UserId) -> Result<()> {
    members::remove(tx, caller, user)?;
    delete_former_member(tx, caller.organization, user)
}

/// Deletes one batch of a removed member's records, and completes the deletion if it was the last one.
fn delete_former_member(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
) -> Result<()> {
    if delete_member_records(tx, organization, user)? < DELETE_BATCH {
        tx.remove::<PendingDeletion>(&PendingDeletion::Member(organization, user).key())?;
    }
    Ok(())
}

/// Deletes up to [`DELETE_BATCH`] records of a removed member: permissions, and invites that the member created.
/// Returns how many it deleted.
fn delete_member_records(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
) -> Result<usize> {
    let mut left = DELETE_BATCH;
    left -= rules::delete_of_member(tx, organization, user, left)?;
    left -= collaborators::delete_of_member(tx, organization, user, left)?;
    left -= grants::delete_of_member(tx, organization, user, left)?;
    left -= invites::delete_created_by(tx, organization, user, left)?;
    Ok(DELETE_BATCH - left)
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
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn pending_projects(tx: &impl Tx, organization: OrganizationId) -> Result<Vec<ProjectId>> {
    let mut removed = Vec::new();
    tx.scan::<PendingDeletion, _>(&organization, Window::all(Order::Ascending), |row| {
        if let PendingDeletion::Project(_, project) = row.meta {
            removed.push(project);
        }
        Ok(())
    })?;
    Ok(removed)
}

/// Deletes one batch of records. Returns whether there may be more.
///
/// The deletions run from the end of the table: removed members, then projects, then the organization. The records of
/// projects must be deleted before the members that they refer to.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn delete_batch(tx: &mut WriteTx<'_>) -> Result<bool> {
    let mut next = None;
    let last = Window { offset: 0, limit: 1, order: Order::Descending };
    tx.scan::<PendingDeletion, _>(&(), last, |row| {
        next = Some(row.meta);
        Ok(())
    })?;
    let Some(sweep) = next else { return Ok(false) };
    let swept = match sweep {
        PendingDeletion::Project(organization, project) => {
            delete_project_records(tx, organization, project)?
        }
        PendingDeletion::Organization(organization) => {
            delete_organization_records(tx, organization)?
        }
        PendingDeletion::Member(organization, user) => {
            delete_member_records(tx, organization, user)?
        }
    };
    if swept == 0 {
        tx.remove::<PendingDeletion>(&sweep.key())?;
    }
    Ok(true)
}

/// Deletes records of a project. A record is deleted only after all records that refer to it.
fn delete_project_records(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
) -> Result<usize> {
    let mut piece = DeleteBatch::new(tx);
    piece.remove::<AccessRule>(&project)?;
    piece.remove::<Collaborator>(&project)?;
    piece.remove::<Tile>(&project)?;
    piece.remove::<Insight>(&project)?;
    piece.remove::<Text>(&project)?;
    piece.remove::<Deletion>(&project)?;
    piece.remove::<Sharing>(&project)?;
    piece.remove::<Details>(&project)?;
    piece.remove::<Dashboard>(&project)?;
    piece.remove::<batch_exports::Secrets>(&project)?;
    piece.remove::<BatchExport>(&project)?;
    piece.remove::<Grant>(&(organization, project))?;
    Ok(piece.deleted)
}

/// Deletes records of an organization. Its projects come first; later batches delete their records, and then the rest.
fn delete_organization_records(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
) -> Result<usize> {
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
    if !ids.is_empty() {
        return Ok(2 * ids.len());
    }
    let mut piece = DeleteBatch::new(tx);
    piece.remove::<Invite>(&organization)?;
    piece.remove::<MembershipOrigin>(&organization)?;
    piece.remove::<Membership>(&organization)?;
    piece.remove::<Domain>(&organization)?;
    piece.remove::<Entry>(&organization)?;
    Ok(piece.deleted)
}

/// A transaction with the number of records that it has deleted.
struct DeleteBatch<'p, 't> {
    tx: &'p mut WriteTx<'t>,
    deleted: usize,
}

impl<'p, 't> DeleteBatch<'p, 't> {
    fn new(tx: &'p mut WriteTx<'t>) -> Self {
        Self { tx, deleted: 0 }
    }

    fn remove<R: Record>(&mut self, prefix: &impl Key) -> Result<()> {
        let limit = DELETE_BATCH.saturating_sub(self.deleted);
        self.deleted += self.tx.remove_some::<R>(prefix, limit)?;
        Ok(())
    }
}

/// Returns whether a dangling reference is expected, because its target was deleted and the background task will delete
/// the record that refers to it. Only organizations, projects and memberships may be such targets: other records are
/// deleted after, or together with, the records that refer to them. Used by the `check` command.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_pending_deletion(tx: &Snapshot, reference: &Reference) -> Result<bool> {
    let mut key = reference.key.as_slice();
    let sweep = match reference.table {
        Table::Organizations => OrganizationId::read(&mut key).map(PendingDeletion::Organization),
        Table::Projects => Key::read(&mut key)
            .map(|(organization, project)| PendingDeletion::Project(organization, project)),
        Table::Memberships => Key::read(&mut key)
            .map(|(organization, user)| PendingDeletion::Member(organization, user)),
        _ => None,
    };
    sweep.map_or(Ok(false), |sweep| tx.exists::<PendingDeletion>(&sweep.key()))
}
