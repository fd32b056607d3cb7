//! The tiles of one insight: those that its JSON lists, putting it on dashboards, and removing it from them. See
//! `docs/spec/insights.md`.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, InsightId, ProjectId, TileId};
use crate::resources::access_controls::caller_levels::CallerLevels;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::insights::body::ListedTile;
use crate::resources::dashboards::visible::VisibleDashboards;
use crate::store::{Tx, WriteTx};

use super::weight::require_bounded_for;
use super::{
    BY_INSIGHT, Content, MAX_TILES_OF_INSIGHT, Meta, Tile, TileStyle, add, keys_of,
    require_insight_room,
};

/// Maximum number of tiles and dashboards that an insight lists on a tile and in a list of insights.
pub const MAX_LISTED: usize = 100;

/// The key of a tile.
type TileKey = (ProjectId, DashboardId, TileId);

/// Returns the live tiles that show an insight, ordered by dashboard.
pub fn live_tiles(tx: &impl Tx, insight: (ProjectId, InsightId)) -> Result<Vec<TileKey>> {
    tx.keys(&BY_INSIGHT, &(insight, false), MAX_TILES_OF_INSIGHT)
}

/// Returns what the JSON of an insight shows of a tile.
///
/// # Errors
/// 500 if the tile does not exist.
pub fn listed(tx: &impl Tx, key: TileKey) -> Result<ListedTile> {
    let tile = tx.meta::<Tile>(&key)?;
    tile.map(|tile| tile.listed()).ok_or_else(|| Error::internal("an index names no tile"))
}

/// Requires that the caller may view every insight that a dashboard shows.
///
/// # Errors
/// 403 otherwise.
pub fn require_view_of_all(tx: &impl Tx, tenant: &InProject, dashboard: DashboardId) -> Result<()> {
    let levels = CallerLevels::<Insight>::of(tx, tenant)?;
    let mut lowest = AccessLevel::Manager;
    let live = keys_of(tx, (tenant.project.id, dashboard), |tile| !tile.deleted)?;
    for key in live {
        let Some(Meta { content: Content::Insight(insight), .. }) = tx.meta::<Tile>(&key)? else {
            continue;
        };
        if let Some(insight) = tx.meta::<Insight>(&(tenant.project.id, insight))? {
            lowest = lowest.min(levels.level(&insight));
        }
    }
    lowest.require(AccessLevel::Viewer)
}

/// Returns the first live tiles that show the same insight as `read` on dashboards that the caller may see. The tile
/// `read` is always among them.
pub(super) fn visible_tiles(
    tx: &impl Tx,
    insight: (ProjectId, InsightId),
    read: &Meta,
    visible: &mut VisibleDashboards<'_>,
) -> Result<Vec<ListedTile>> {
    let limit = if visible.are_all() { MAX_LISTED } else { MAX_TILES_OF_INSIGHT };
    let mut shown = Vec::new();
    for tile in tx.keys(&BY_INSIGHT, &(insight, false), limit)? {
        if tile.1 == read.dashboard {
            shown.push(read.listed());
        } else if shown.len() < MAX_LISTED && visible.shows(tx, tile.1)? {
            shown.push(listed(tx, tile)?);
        }
    }
    if shown.iter().all(|tile| tile.dashboard != read.dashboard) {
        // Tiles are sorted by dashboard, so this tile comes after all that were read.
        shown.push(read.listed());
    }
    if shown.len() > MAX_LISTED {
        shown.remove(MAX_LISTED - 1);
    }
    Ok(shown)
}

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
