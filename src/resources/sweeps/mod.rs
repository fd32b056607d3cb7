//! What ends with a parent: removing an organization or a project hides it at once; what it held is
//! removed afterwards, a bounded piece a transaction (decisions §4, Project). So it is with what a removed member was
//! granted.

mod accounts;

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::resources::access_controls::rules::{self, Rule};
use crate::resources::activity::Entry;
use crate::resources::batch_exports::{self, BatchExport};
use crate::resources::collaborators::{self, Collaborator};
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::removals::Removal;
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

pub use crate::resources::organizations::Sweep;
pub use accounts::{end_account, ends_in_pieces};

/// How many records one transaction sweeps at the most.
const PIECE: usize = 500;

/// Removes a member with what the member was granted and whom the member invited. What is more than one transaction
/// removes is left to the sweeper: without a membership it gives nothing, and no list shows it.
///
/// # Errors
/// What [`members::remove`] refuses.
pub fn remove_member(tx: &mut WriteTx<'_>, caller: &Membership, user: UserId) -> Result<()> {
    members::remove(tx, caller, user)?;
    sweep_removed_member(tx, caller.organization, user)
}

/// Sweeps one piece of what a removed member left, and ends the sweep if that was the last one.
fn sweep_removed_member(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
) -> Result<()> {
    if sweep_member(tx, organization, user)? < PIECE {
        tx.remove::<Sweep>(&Sweep::Member(organization, user).key())?;
    }
    Ok(())
}

/// Removes up to [`PIECE`] records that a removed member left: what the member was granted and whom the member
/// invited.
fn sweep_member(tx: &mut WriteTx<'_>, organization: OrganizationId, user: UserId) -> Result<usize> {
    let mut left = PIECE;
    left -= rules::remove_of(tx, organization, user, left)?;
    left -= collaborators::remove_of(tx, organization, user, left)?;
    left -= grants::remove_of(tx, organization, user, left)?;
    left -= invites::remove_made_by(tx, organization, user, left)?;
    Ok(PIECE - left)
}

/// Removes a project; what it holds is left to the sweeper.
///
/// # Errors
/// 404 when it is gone.
pub fn remove_project(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
) -> Result<()> {
    projects::remove(tx, organization, project)?;
    tx.put(&Sweep::Project(organization, project))
}

/// Removes an organization; what it holds is left to the sweeper.
///
/// # Errors
/// 404 when it is gone.
pub fn remove_organization(tx: &mut WriteTx<'_>, organization: OrganizationId) -> Result<()> {
    organizations::remove(tx, organization)?;
    tx.put(&Sweep::Organization(organization))
}

/// The removed projects of an organization whose records have yet to be swept: lists over all projects of an
/// organization leave out what is in them.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn removed_projects(tx: &impl Tx, organization: OrganizationId) -> Result<Vec<ProjectId>> {
    let mut removed = Vec::new();
    tx.scan::<Sweep, _>(&organization, Window::all(Order::Ascending), |row| {
        if let Sweep::Project(_, project) = row.head {
            removed.push(project);
        }
        Ok(())
    })?;
    Ok(removed)
}

/// Sweeps one piece; answers whether there may be more. The last in the table goes first: an organization
/// stands before its projects there, and what they hold must be gone before the members whom it names. What removed
/// members left goes before both.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn sweep(tx: &mut WriteTx<'_>) -> Result<bool> {
    let mut next = None;
    let last = Window { offset: 0, limit: 1, order: Order::Descending };
    tx.scan::<Sweep, _>(&(), last, |row| {
        next = Some(row.head);
        Ok(())
    })?;
    let Some(sweep) = next else { return Ok(false) };
    let swept = match sweep {
        Sweep::Project(organization, project) => sweep_project(tx, organization, project)?,
        Sweep::Organization(organization) => sweep_organization(tx, organization)?,
        Sweep::Member(organization, user) => sweep_member(tx, organization, user)?,
    };
    if swept == 0 {
        tx.remove::<Sweep>(&sweep.key())?;
    }
    Ok(true)
}

/// What ends with a project. What points at a record of it goes before that record.
fn sweep_project(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
) -> Result<usize> {
    let mut piece = Piece::new(tx);
    piece.remove::<Rule>(&project)?;
    piece.remove::<Collaborator>(&project)?;
    piece.remove::<Tile>(&project)?;
    piece.remove::<Insight>(&project)?;
    piece.remove::<Text>(&project)?;
    piece.remove::<Removal>(&project)?;
    piece.remove::<Sharing>(&project)?;
    piece.remove::<Details>(&project)?;
    piece.remove::<Dashboard>(&project)?;
    piece.remove::<batch_exports::Secrets>(&project)?;
    piece.remove::<BatchExport>(&project)?;
    piece.remove::<Grant>(&(organization, project))?;
    Ok(piece.swept)
}

/// What ends with an organization: its projects, which the next pieces sweep, and then the rest.
fn sweep_organization(tx: &mut WriteTx<'_>, organization: OrganizationId) -> Result<usize> {
    // A project is two records.
    let window = Window { offset: 0, limit: PIECE / 2, order: Order::Ascending };
    let mut ids = Vec::new();
    tx.scan::<Project, _>(&organization, window, |row| {
        ids.push(row.head.id);
        Ok(())
    })?;
    for id in &ids {
        remove_project(tx, organization, *id)?;
    }
    if !ids.is_empty() {
        return Ok(2 * ids.len());
    }
    let mut piece = Piece::new(tx);
    piece.remove::<Invite>(&organization)?;
    piece.remove::<MembershipOrigin>(&organization)?;
    piece.remove::<Membership>(&organization)?;
    piece.remove::<Domain>(&organization)?;
    piece.remove::<Entry>(&organization)?;
    Ok(piece.swept)
}

/// What one transaction may still sweep.
struct Piece<'p, 't> {
    tx: &'p mut WriteTx<'t>,
    swept: usize,
}

impl<'p, 't> Piece<'p, 't> {
    fn new(tx: &'p mut WriteTx<'t>) -> Self {
        Self { tx, swept: 0 }
    }

    fn remove<R: Record>(&mut self, prefix: &impl Key) -> Result<()> {
        let limit = PIECE.saturating_sub(self.swept);
        self.swept += self.tx.remove_some::<R>(prefix, limit)?;
        Ok(())
    }
}

/// Whether a reference that leads nowhere is in order: its target was removed, and the sweeper has yet to
/// come to the record that points at it. That may only be an organization, a project or a membership; whatever else is
/// pointed at is removed after all that points at it, or together with it. For `check`.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn excuses(tx: &Snapshot, reference: &Reference) -> Result<bool> {
    let mut key = reference.key.as_slice();
    let sweep = match reference.table {
        Table::Organizations => OrganizationId::read(&mut key).map(Sweep::Organization),
        Table::Projects => {
            Key::read(&mut key).map(|(organization, project)| Sweep::Project(organization, project))
        }
        Table::Memberships => {
            Key::read(&mut key).map(|(organization, user)| Sweep::Member(organization, user))
        }
        _ => None,
    };
    sweep.map_or(Ok(false), |sweep| tx.exists::<Sweep>(&sweep.key()))
}
