//! Deleting and restoring dashboards. A deleted dashboard has a [`Deletion`] until it is restored.

use serde::{Deserialize, Serialize};

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId, UserId};
use crate::resources::projects::{Meta, Settings};
use crate::store::{Index, Key, Reference, Table, Tx, WriteTx, impl_record};
use crate::time::Timestamp;

use super::{Dashboard, tiles};

/// Records who deleted a dashboard, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deletion {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the dashboard.
    pub project: ProjectId,
    /// The deleted dashboard.
    pub dashboard: DashboardId,
    /// The user who deleted it.
    pub removed_by: UserId,
    /// When it was deleted.
    pub removed_at: Timestamp,
}

/// Deleted dashboards of a project, ordered by the time of deletion.
pub const BY_MOMENT: Index<Deletion, (ProjectId, Timestamp)> =
    Index::many(Table::RemovalsByMoment, |removal| Some((removal.project, removal.removed_at)));

impl_record!(Deletion {
    table: Removals,
    key: |deletion| -> (ProjectId, DashboardId) { (deletion.project, deletion.dashboard) },
    indexes: [&BY_MOMENT],
    counts: [|removal| Some(removal.project.encoded())],
    owner: |deletion, _| Ok(Some(deletion.organization.owner())),
    references: |deletion| [Reference::to::<Dashboard>(&(deletion.project, deletion.dashboard))],
});

/// Deletes the tiles of a dashboard, records the deletion, and clears the project's `primary_dashboard` if
/// it was this one. With `with_insights`, also deletes the insights that no other dashboard shows.
pub(super) fn delete(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    with_insights: bool,
    now: Timestamp,
) -> Result<()> {
    let Meta { organization, id: project, .. } = tenant.project;
    tiles::delete_all(tx, tenant, dashboard, with_insights, now)?;
    let mut settings: Settings = tx.get(&(organization, project))?;
    if settings.fields.primary_dashboard == Some(dashboard.0) {
        settings.fields.primary_dashboard = None;
        settings.fields.updated_at = now;
        tx.put(&settings)?;
    }
    let removed_by = tenant.member.user;
    tx.put(&Deletion { organization, project, dashboard, removed_by, removed_at: now })
}

/// Restores all tiles of a dashboard with their insights, and removes the record of its deletion.
pub(super) fn restore(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    now: Timestamp,
) -> Result<()> {
    tiles::restore_all(tx, tenant, dashboard, now)?;
    tx.remove::<Deletion>(&(tenant.project.id, dashboard)).map(drop)
}
