//! Who removed a dashboard, and when, for as long as it is removed (facts-dashboards §4).

use serde::{Deserialize, Serialize};

use crate::access::InProject;
use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId, UserId};
use crate::store::{Count, Index, Indexed, Key, Record, Reference, Table, WriteTx};
use crate::time::Timestamp;

use super::Dashboard;

/// The removal of a dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Removal {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The dashboard's project.
    pub project: ProjectId,
    /// The dashboard.
    pub dashboard: DashboardId,
    /// Who removed it.
    pub removed_by: UserId,
    /// When.
    pub removed_at: Timestamp,
}

/// The removed dashboards of a project, by when they were removed.
pub const BY_MOMENT: Index<Removal, (ProjectId, Timestamp)> =
    Index::many(Table::RemovalsByMoment, |removal| Some((removal.project, removal.removed_at)));

impl Record for Removal {
    const TABLE: Table = Table::Removals;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_MOMENT];
    const COUNTS: &'static [Count<Self>] = &[Count::per(|removal| Some(removal.project.encoded()))];
    type Key = (ProjectId, DashboardId);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        (self.project, self.dashboard)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Dashboard>(&(self.project, self.dashboard))]
    }
}

/// Notes that the caller removed a dashboard.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn note(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    now: Timestamp,
) -> Result<()> {
    tx.put(&Removal {
        organization: place.project.organization,
        project: place.project.id,
        dashboard,
        removed_by: place.member.user,
        removed_at: now,
    })
}

/// Forgets the removal of a dashboard that was brought back.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn forget(tx: &mut WriteTx<'_>, key: (ProjectId, DashboardId)) -> Result<()> {
    tx.remove::<Removal>(&key).map(drop)
}
