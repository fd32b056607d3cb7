//! Copying tiles (facts-dashboards §5; §7, Writing tiles).

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, TileId};
use crate::resources::dashboards::{insights, texts};
use crate::secret::Draw;
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::input::TileRef;
use super::weight::{Copied, require_bounded};
use super::{Content, Look, Shown, Tile, add};

/// Puts tiles on a new dashboard that look like the live ones of `source`, and show the same insights and
/// texts; where `deep` holds, copies of them.
///
/// # Errors
/// 400 where the tiles are too heavy to be copied by one request, or for one dashboard.
pub(in crate::resources::dashboards) fn copy_all(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    (source, dashboard): (DashboardId, DashboardId),
    deep: bool,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<()> {
    let project = place.project.id;
    let mut copied = Copied::new(if deep { "duplicate_tiles" } else { "use_dashboard" });
    let mut ids = Vec::new();
    tx.scan::<Tile, _>(&(project, source), Window::all(Order::Ascending), |row| {
        if !row.head.deleted {
            copied.add_tile(row.shown)?;
            ids.push(row.head.id);
        }
        Ok(())
    })?;
    for id in ids {
        let tile: Tile = tx.get(&(project, source, id))?;
        let mut content = tile.head.content;
        if deep {
            copied.add_content(tx, project, content)?;
            content = copy(tx, place, content, draw, now)?;
        }
        let Shown { layouts, color, .. } = tile.shown;
        add(tx, place, dashboard, content, Look { layouts, color })?;
    }
    require_bounded(tx, project, dashboard)
}

/// Copies tiles of a dashboard on that dashboard, with what they show; the copies have no place yet.
///
/// # Errors
/// 400 for a tile that is not there, or a dashboard that is full.
pub(in crate::resources::dashboards) fn duplicate(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    sent: &[TileRef],
    draw: &mut Draw,
    now: Timestamp,
) -> Result<()> {
    let project = place.project.id;
    let mut copied = Copied::new("duplicate_tiles");
    for (index, TileRef { id }) in sent.iter().enumerate() {
        let tile: Option<Tile> = tx.find(&(project, dashboard, TileId(*id)))?;
        let tile = tile.filter(|tile| !tile.head.deleted).ok_or_else(|| {
            let detail = format!("Invalid pk \"{id}\" - object does not exist.");
            Error::field(format!("duplicate_tiles__{index}__id"), "does_not_exist", detail)
        })?;
        copied.add_content(tx, project, tile.head.content)?;
        let content = copy(tx, place, tile.head.content, draw, now)?;
        let look = Look { color: tile.shown.color, ..Look::default() };
        let copy = add(tx, place, dashboard, content, look)?;
        tx.view::<Tile, _>(&(project, dashboard, copy), |row| copied.add_tile(row.shown))?;
    }
    require_bounded(tx, project, dashboard)
}

fn copy(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    content: Content,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<Content> {
    Ok(match content {
        Content::Insight(id) => Content::Insight(insights::copy(tx, place, id, draw, now)?),
        Content::Text(id) => Content::Text(texts::copy(tx, place, id, now)?),
    })
}
