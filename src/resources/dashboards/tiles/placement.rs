//! Putting one insight on dashboards, and removing it from them. See `docs/spec/insights.md`.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, InsightId, ProjectId, TileId};
use crate::resources::dashboards::Dashboard;
use crate::store::{Tx, WriteTx};

use super::weight::require_bounded_for;
use super::{BY_INSIGHT, Content, Tile, TileStyle, add, require_insight_room};

/// The request field that names the dashboards of an insight.
const FIELD: &str = "dashboards";

/// Puts an insight on a dashboard that does not show it: restores its deleted tile there, or adds a tile.
///
/// # Errors
/// 400 `max_length` if the dashboard or the insight has too many tiles, or the dashboard is too heavy.
pub fn place(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    insight: InsightId,
) -> Result<()> {
    let project = tenant.project.id;
    if let Some(key) = deleted_tile(tx, project, dashboard, insight)? {
        let mut tile: Tile = tx.get(&key)?;
        tile.restore();
        tx.put(&tile)?;
    } else {
        let full = |error: Error| error.with_attr_prefix(FIELD);
        require_insight_room(tx, project, insight).map_err(full)?;
        add(tx, tenant, dashboard, Content::Insight(insight), TileStyle::default())?;
    }
    require_bounded_for(tx, (project, dashboard), FIELD)?;
    tx.log_about::<Dashboard>(&(project, dashboard));
    tx.bump_version::<Dashboard>(&(project, dashboard))
}

fn deleted_tile(
    tx: &impl Tx,
    project: ProjectId,
    dashboard: DashboardId,
    insight: InsightId,
) -> Result<Option<(ProjectId, DashboardId, TileId)>> {
    let prefix = ((project, insight, true), (project, dashboard));
    Ok(tx.keys(&BY_INSIGHT, &prefix, 1)?.pop())
}

/// Deletes a live tile softly.
///
/// # Errors
/// 404 if the tile does not exist.
pub fn withdraw(tx: &mut WriteTx<'_>, key: (ProjectId, DashboardId, TileId)) -> Result<()> {
    let mut tile: Tile = tx.get(&key)?;
    tile.meta.deleted = true;
    tx.put(&tile)?;
    tx.log_about::<Dashboard>(&(key.0, key.1));
    tx.bump_version::<Dashboard>(&(key.0, key.1))
}
