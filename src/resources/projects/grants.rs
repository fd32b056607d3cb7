//! Grants: which plain members may see a private project, and who runs one (decisions §3).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::resources::members::Membership;
use crate::store::{Index, Indexed, Order, Owner, Record, Reference, Table, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::{Head, Project};

/// What a grant gives on a project. Levels compare by how much they give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrantLevel {
    /// Nothing: such a grant is kept and shown, and decides nothing.
    None,
    /// To see it and work in it.
    Member,
    /// To say who else may, besides.
    Admin,
}

impl GrantLevel {
    /// All of them, least first.
    pub const ALL: [Self; 3] = [Self::None, Self::Member, Self::Admin];

    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// The number that `effective_membership_level` shows; none for what gives nothing.
    pub const fn number(self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::Member => Some(1),
            Self::Admin => Some(8),
        }
    }
}

/// What one member was given on one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// The organization of both.
    pub organization: OrganizationId,
    /// The project.
    pub project: ProjectId,
    /// Whose right it is.
    pub user: UserId,
    /// How far it goes.
    pub level: GrantLevel,
    /// When it was first given.
    pub created_at: Timestamp,
    /// When its level last changed.
    pub updated_at: Timestamp,
}

/// The grants of a member.
pub const BY_USER: Index<Grant, (OrganizationId, UserId)> =
    Index::many(Table::GrantsByUser, |grant| Some((grant.organization, grant.user)));

impl Record for Grant {
    const TABLE: Table = Table::Grants;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_USER];
    type Key = (OrganizationId, ProjectId, UserId);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        (self.organization, self.project, self.user)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![
            Reference::to::<Project>(&(self.organization, self.project)),
            Reference::to::<Membership>(&(self.organization, self.user)),
        ]
    }
}

/// What a user's grant on a project gives, if it gives anything.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find(tx: &impl Tx, project: &Head, user: UserId) -> Result<Option<GrantLevel>> {
    let grant = tx.head::<Grant>(&(project.organization, project.id, user))?;
    Ok(grant.map(|grant| grant.level).filter(|level| *level > GrantLevel::None))
}

/// The projects on which a member's grants give something.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn of_member(
    tx: &impl Tx,
    organization: OrganizationId,
    user: UserId,
) -> Result<Vec<ProjectId>> {
    let mut projects = Vec::new();
    tx.walk(&BY_USER, &(organization, user), Window::all(Order::Ascending), |row| {
        if row.head.level > GrantLevel::None {
            projects.push(row.head.project);
        }
        Ok(())
    })?;
    Ok(projects)
}

/// Puts a member's grant on a project at this level, whatever it was. One that is there already stays
/// as it is.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn set(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
    user: UserId,
    level: GrantLevel,
    now: Timestamp,
) -> Result<Grant> {
    let grant = match tx.find::<Grant>(&(organization, project, user))? {
        Some(grant) if grant.level == level => return Ok(grant),
        Some(grant) => Grant { level, updated_at: now, ..grant },
        None => Grant { organization, project, user, level, created_at: now, updated_at: now },
    };
    tx.put(&grant)?;
    Ok(grant)
}

/// Gives a member this level on a project, as an invite does: a higher grant is not lowered, `none`
/// gives nothing, and a project that is gone is passed over (facts-org §3.4).
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn give(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
    user: UserId,
    level: GrantLevel,
    now: Timestamp,
) -> Result<()> {
    let held = tx.head::<Grant>(&(organization, project, user))?;
    let held = held.map_or(GrantLevel::None, |grant| grant.level);
    if level > held && tx.exists::<Project>(&(organization, project))? {
        set(tx, organization, project, user, level, now)?;
    }
    Ok(())
}

/// Removes up to `limit` grants of a member who left; returns how many.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn remove_of(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
    limit: usize,
) -> Result<usize> {
    let keys = tx.keys(&BY_USER, &(organization, user), limit)?;
    for key in &keys {
        tx.remove::<Grant>(key)?;
    }
    Ok(keys.len())
}
