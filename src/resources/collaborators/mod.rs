//! Collaborators: who edits a dashboard that is restricted to them (API document, Dashboard collaborator;
//! facts-dashboards §10).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::access::InProject;
use crate::error::Result;
use crate::ids::{CollaboratorId, DashboardId, OrganizationId, ProjectId, UserId};
use crate::resources::members::Membership;
use crate::store::{Index, Indexed, Order, Record, Reference, Table, Tx, Window, WriteTx};
use crate::time::Timestamp;

/// A user who may edit a restricted dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collaborator {
    /// The organization of all of them.
    pub organization: OrganizationId,
    /// The dashboard's project.
    pub project: ProjectId,
    /// The dashboard.
    pub dashboard: DashboardId,
    /// Who.
    pub user: UserId,
    /// The row's own id.
    pub id: CollaboratorId,
    /// What they may do: 37, edit.
    pub level: i64,
    /// When they were added.
    pub added_at: Timestamp,
    /// When the row last changed.
    pub updated_at: Timestamp,
}

/// What a member collaborates on.
pub const BY_USER: Index<Collaborator, (OrganizationId, UserId)> =
    Index::many(Table::CollaboratorsByUser, |row| Some((row.organization, row.user)));

impl Record for Collaborator {
    const TABLE: Table = Table::Collaborators;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_USER];
    type Key = (ProjectId, DashboardId, UserId);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        (self.project, self.dashboard, self.user)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Membership>(&(self.organization, self.user))]
    }
}

/// The caller's level as a collaborator of a dashboard, if they are one.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn level(tx: &impl Tx, place: &InProject, dashboard: DashboardId) -> Result<Option<i64>> {
    let key = (place.project.id, dashboard, place.member.user);
    Ok(tx.head::<Collaborator>(&key)?.map(|row| row.level))
}

/// The caller's level on each dashboard of the project that they are a collaborator of.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn levels(tx: &impl Tx, place: &InProject) -> Result<HashMap<DashboardId, i64>> {
    let mine = (place.member.organization, place.member.user, place.project.id);
    let mut levels = HashMap::new();
    tx.walk(&BY_USER, &mine, Window::all(Order::Ascending), |row| {
        levels.insert(row.head.dashboard, row.head.level);
        Ok(())
    })?;
    Ok(levels)
}

/// Removes what a member who leaves collaborates on.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn remove_of(tx: &mut WriteTx<'_>, organization: OrganizationId, user: UserId) -> Result<()> {
    for key in tx.keys(&BY_USER, &(organization, user), usize::MAX)? {
        tx.remove::<Collaborator>(&key)?;
    }
    Ok(())
}
