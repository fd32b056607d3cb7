//! The tiles that the JSON of an insight lists.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, InsightId, ProjectId, TileId};
use crate::resources::access_controls::caller_levels::CallerLevels;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::insights::body::ListedTile;
use crate::resources::dashboards::visible::VisibleDashboards;
use crate::store::Tx;

use super::{BY_INSIGHT, Content, MAX_TILES_OF_INSIGHT, Meta, Tile, keys_of};

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
