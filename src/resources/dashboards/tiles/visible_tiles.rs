//! The tiles that the JSON of an insight lists.

use crate::error::Result;
use crate::ids::{DashboardId, InsightId, ProjectId};
use crate::resources::dashboards::insights::TileKey;
use crate::resources::dashboards::visible::VisibleDashboards;
use crate::store::Tx;

use super::BY_INSIGHT;

/// Maximum number of tiles and dashboards that an insight lists.
const MAX_LISTED: usize = 100;
/// Maximum number of tiles to read to find those, if the caller may not see all dashboards.
const MAX_SCANNED: usize = 1_000;

/// Returns the first live tiles that show the insight on dashboards that the caller may see. The tile on
/// the dashboard `read` is always among them.
pub(super) fn visible_tiles(
    tx: &impl Tx,
    insight: (ProjectId, InsightId),
    read: DashboardId,
    visible: &mut VisibleDashboards<'_>,
) -> Result<Vec<TileKey>> {
    let looked_at = if visible.are_all() { MAX_LISTED } else { MAX_SCANNED };
    let mut fields = Vec::new();
    for tile in tx.keys(&BY_INSIGHT, &insight, looked_at)? {
        if fields.len() < MAX_LISTED && visible.shows(tx, tile.1)? {
            fields.push(tile);
        }
    }
    if fields.iter().all(|tile| tile.1 != read) {
        // Tiles are sorted by dashboard, so this tile comes after all that were read.
        fields.truncate(MAX_LISTED - 1);
        fields.extend(tx.keys(&BY_INSIGHT, &(insight, (insight.0, read)), 1)?);
    }
    Ok(fields)
}
