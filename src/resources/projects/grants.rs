//! Grants: which plain members may see a private project (decisions §3).

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::resources::members::Membership;
use crate::store::{Index, Indexed, Record, Reference, Table, Tx, WriteTx};

use super::{Head, Project};

/// What a grant gives on a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantLevel {
    /// To see it and work in it.
    Member,
    /// To run it.
    Admin,
}

impl GrantLevel {
    /// The number that `effective_membership_level` shows.
    pub const fn number(self) -> i64 {
        match self {
            Self::Member => 1,
            Self::Admin => 8,
        }
    }
}

/// A plain member's right to a project.
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
}

/// The projects a member has grants on.
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

    fn references(&self) -> Vec<Reference> {
        vec![
            Reference::to::<Project>(&(self.organization, self.project)),
            Reference::to::<Membership>(&(self.organization, self.user)),
        ]
    }
}

/// What a user's grant on a project gives, if there is one.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find(tx: &impl Tx, project: &Head, user: UserId) -> Result<Option<GrantLevel>> {
    let grant = tx.head::<Grant>(&(project.organization, project.id, user))?;
    Ok(grant.map(|grant| grant.level))
}

/// The projects a member has grants on.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn of_member(
    tx: &impl Tx,
    organization: OrganizationId,
    user: UserId,
) -> Result<Vec<ProjectId>> {
    let keys = tx.keys(&BY_USER, &(organization, user), usize::MAX)?;
    Ok(keys.into_iter().map(|(_, project, _)| project).collect())
}

/// Gives a member access to a project, or more than they had.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn give(
    tx: &mut WriteTx<'_>,
    project: &Head,
    user: UserId,
    level: GrantLevel,
    _now: crate::time::Timestamp,
) -> Result<()> {
    if find(tx, project, user)?.is_some_and(|known| known >= level) {
        return Ok(());
    }
    tx.put(&Grant { organization: project.organization, project: project.id, user, level })
}

/// Removes the grants of a member who leaves.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn remove_of(tx: &mut WriteTx<'_>, organization: OrganizationId, user: UserId) -> Result<()> {
    for key in tx.keys(&BY_USER, &(organization, user), usize::MAX)? {
        tx.remove::<Grant>(&key)?;
    }
    Ok(())
}
