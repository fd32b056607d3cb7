//! The set of dashboards that show an insight.

use std::collections::BTreeSet;

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, InsightId, ProjectId, TileId};
use crate::resources::access_controls::shared::Shared;
use crate::resources::dashboards::{Dashboard, VisibleDashboards, tiles};
use crate::store::{Tx, WriteTx};

use super::api::no_dashboard;

/// How the dashboards of an insight change. Dashboards that are hidden from the caller are only in `keep`.
#[derive(Debug, Default)]
pub(super) struct DashboardChanges {
    add: Vec<DashboardId>,
    remove: Vec<(ProjectId, DashboardId, TileId)>,
    keep: Vec<DashboardId>,
}

impl DashboardChanges {
    /// Returns the changes after which the insight is on the dashboards `wanted`. Without `wanted` nothing changes.
    ///
    /// # Errors
    /// 400 if a dashboard does not exist, is deleted or is hidden from the caller; 403 if the caller may not edit a
    /// dashboard that changes.
    pub(super) fn between(
        tx: &impl Tx,
        tenant: &InProject,
        insight: InsightId,
        wanted: Option<&BTreeSet<DashboardId>>,
        dashboards: &mut VisibleDashboards<'_>,
    ) -> Result<Self> {
        let shown = tiles::live_tiles(tx, (tenant.project.id, insight))?;
        let mut changes = Self::default();
        let Some(wanted) = wanted else {
            changes.keep.extend(shown.into_iter().map(|tile| tile.1));
            return Ok(changes);
        };
        for id in wanted {
            require_exists(tx, tenant, *id, dashboards)?;
        }
        for tile in shown {
            if wanted.contains(&tile.1) || !dashboards.shows(tx, tile.1)? {
                changes.keep.push(tile.1);
            } else {
                require_edit(tx, tile.1, "remove insights from", dashboards)?;
                changes.remove.push(tile);
            }
        }
        for id in wanted.iter().filter(|id| !changes.keep.contains(id)) {
            require_edit(tx, *id, "add insights to", dashboards)?;
            changes.add.push(*id);
        }
        Ok(changes)
    }

    /// Returns the changes after which no dashboard shows the insight.
    pub(super) fn removal(tx: &impl Tx, project: ProjectId, insight: InsightId) -> Result<Self> {
        let remove = tiles::live_tiles(tx, (project, insight))?;
        Ok(Self { remove, ..Self::default() })
    }

    /// Returns whether no dashboard is added or removed.
    pub(super) fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// Adds and deletes the tiles.
    ///
    /// # Errors
    /// 400 `max_length` if a dashboard or the insight is full.
    pub(super) fn apply(
        &self,
        tx: &mut WriteTx<'_>,
        tenant: &InProject,
        insight: InsightId,
    ) -> Result<()> {
        for tile in &self.remove {
            tiles::withdraw(tx, *tile)?;
        }
        for dashboard in &self.add {
            tiles::place(tx, tenant, *dashboard, insight)?;
        }
        Ok(())
    }

    /// Increments the versions of the dashboards that still show the insight, because the insight changed.
    pub(super) fn bump_kept(&self, tx: &mut WriteTx<'_>, project: ProjectId) -> Result<()> {
        self.keep.iter().try_for_each(|id| tx.bump_version::<Dashboard>(&(project, *id)))
    }
}

fn require_exists(
    tx: &impl Tx,
    tenant: &InProject,
    id: DashboardId,
    dashboards: &mut VisibleDashboards<'_>,
) -> Result<()> {
    let found = Dashboard::find_live(tx, tenant.project.id, &id)?;
    if found.is_some() && dashboards.shows(tx, id)? {
        return Ok(());
    }
    Err(no_dashboard(&id).with_attr_prefix("dashboards"))
}

fn require_edit(
    tx: &impl Tx,
    id: DashboardId,
    what: &str,
    dashboards: &mut VisibleDashboards<'_>,
) -> Result<()> {
    let rights = dashboards.rights(tx, id)?;
    if rights.is_some_and(|rights| rights.require_edit().is_ok()) {
        return Ok(());
    }
    Err(Error::denied(format!("You don't have permission to {what} dashboard: {id}")))
}
