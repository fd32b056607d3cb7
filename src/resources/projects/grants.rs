//! Grants: the access of single members to a project. See `docs/spec/access-controls.md`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::resources::members::Membership;
use crate::store::{Index, Order, Reference, Table, Tx, Window, WriteTx, impl_record};
use crate::time::Timestamp;

use super::{Meta, Project};

/// The level of a grant. Levels are ordered from no access to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrantLevel {
    /// No access. The grant is stored and shown, but has no effect.
    None,
    /// May see the project and work in it.
    Member,
    /// May also edit the access controls of the project.
    Admin,
}

impl GrantLevel {
    /// All levels, lowest first.
    pub const ALL: [Self; 3] = [Self::None, Self::Member, Self::Admin];

    /// Returns the name of the level in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// Returns the number of the level in `effective_membership_level`; `None` for no access.
    pub const fn number(self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::Member => Some(1),
            Self::Admin => Some(8),
        }
    }
}

/// The access of one member to one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// The organization of the project and of the member.
    pub organization: OrganizationId,
    /// The project.
    pub project: ProjectId,
    /// The member's user.
    pub user: UserId,
    /// The level of access.
    pub level: GrantLevel,
    /// When the grant was created.
    pub created_at: Timestamp,
    /// When the level last changed.
    pub updated_at: Timestamp,
}

/// Grants by member.
pub const BY_USER: Index<Grant, (OrganizationId, UserId)> =
    Index::many(Table::GrantsByUser, |grant| Some((grant.organization, grant.user)));

impl_record!(Grant {
    table: Grants,
    key: |grant| -> (OrganizationId, ProjectId, UserId) {
        (grant.organization, grant.project, grant.user)
    },
    indexes: [&BY_USER],
    owner: |grant, _| Ok(Some(grant.organization.owner())),
    references: |grant| [
        Reference::to::<Project>(&(grant.organization, grant.project)),
        Reference::to::<Membership>(&(grant.organization, grant.user)),
    ],
});

/// Returns the level of a user's grant on a project; `None` if there is no grant, or it gives no access.
pub fn find(tx: &impl Tx, project: &Meta, user: UserId) -> Result<Option<GrantLevel>> {
    let grant = tx.meta::<Grant>(&(project.organization, project.id, user))?;
    Ok(grant.map(|grant| grant.level).filter(|level| *level > GrantLevel::None))
}

/// Returns the projects to which a member has access by a grant.
pub fn of_member(
    tx: &impl Tx,
    organization: OrganizationId,
    user: UserId,
) -> Result<Vec<ProjectId>> {
    let mut projects = Vec::new();
    tx.walk(&BY_USER, &(organization, user), Window::all(Order::Ascending), |row| {
        if row.meta.level > GrantLevel::None {
            projects.push(row.meta.project);
        }
        Ok(())
    })?;
    Ok(projects)
}

/// Creates a grant or sets its level. A grant that already has this level does not change.
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

/// Applies the grant of an accepted invite. Never lowers a level, and does nothing if the project no longer
/// exists.
pub fn raise(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
    user: UserId,
    level: GrantLevel,
    now: Timestamp,
) -> Result<()> {
    let held = tx.meta::<Grant>(&(organization, project, user))?;
    let held = held.map_or(GrantLevel::None, |grant| grant.level);
    if level > held && tx.exists::<Project>(&(organization, project))? {
        set(tx, organization, project, user, level, now)?;
    }
    Ok(())
}
