//! Who removed a dashboard, and when, for as long as it is removed (facts-dashboards §4).

use serde::{Deserialize, Serialize};

use crate::access::InProject;
use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId, UserId};
use crate::resources::projects::{Head, Settings};
use crate::store::{Count, Index, Indexed, Key, Owner, Record, Reference, Table, Tx, WriteTx};
use crate::time::Timestamp;

use super::{Dashboard, tiles};

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

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Dashboard>(&(self.project, self.dashboard))]
    }
}

/// What ends with a dashboard that the caller removes: its tiles, where `with_insights` holds the insights
/// that only they show, and its being the project's primary dashboard.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn remove(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    with_insights: bool,
    now: Timestamp,
) -> Result<()> {
    let Head { organization, id: project, .. } = place.project;
    tiles::remove_all(tx, place, dashboard, with_insights, now)?;
    let mut settings: Settings = tx.get(&(organization, project))?;
    if settings.shown.primary_dashboard == Some(dashboard.0) {
        settings.shown.primary_dashboard = None;
        settings.shown.updated_at = now;
        tx.put(&settings)?;
    }
    let removed_by = place.member.user;
    tx.put(&Removal { organization, project, dashboard, removed_by, removed_at: now })
}

/// What comes back with a dashboard: all its tiles and their insights.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn restore(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    now: Timestamp,
) -> Result<()> {
    tiles::restore_all(tx, place, dashboard, now)?;
    tx.remove::<Removal>(&(place.project.id, dashboard)).map(drop)
}
