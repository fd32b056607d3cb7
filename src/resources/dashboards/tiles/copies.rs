//! Copying tiles. See `docs/spec/tiles.md`.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, ProjectId, TileId};
use crate::resources::access_controls::caller_levels::level_on;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::dashboards::insights::{self, Insight};
use crate::resources::dashboards::texts;
use crate::secret::SeededRng;
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::input::DuplicateTile;
use super::weight::{CopyBudget, require_bounded};
use super::{Content, Tile, TileStyle, add, require_insight_room};

/// Copies the live tiles of `source` to a new dashboard. The copies show the same insights and texts, or
/// copies of them if `deep` is true. An insight that the caller may not view is never copied.
///
/// # Errors
/// 400 if the tiles are larger than one request may copy, or than one dashboard may hold.
pub(in crate::resources::dashboards) fn copy_all(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    (source, dashboard): (DashboardId, DashboardId),
    deep: bool,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let project = tenant.project.id;
    let mut copied = CopyBudget::new(if deep { "duplicate_tiles" } else { "use_dashboard" });
    let mut ids = Vec::new();
    tx.scan::<Tile, _>(&(project, source), Window::all(Order::Ascending), |row| {
        if !row.meta.deleted {
            copied.add_tile(row.fields)?;
            ids.push(row.meta.id);
        }
        Ok(())
    })?;
    for id in ids {
        let tile: Tile = tx.get(&(project, source, id))?;
        let mut content = tile.meta.content;
        if deep && can_view(tx, tenant, content)? {
            copied.add_content(tx, project, content)?;
            content = copy(tx, tenant, content, rng, now)?;
        } else {
            share(tx, project, content)?;
        }
        add(tx, tenant, dashboard, content, TileStyle::of(tile.fields))?;
    }
    require_bounded(tx, project, dashboard)
}

/// Duplicates tiles on their own dashboard, with copies of their insights and texts. A new tile looks as the request says,
/// and otherwise as the tile that it copies, without a position.
///
/// # Errors
/// 400 if a tile does not exist, the dashboard is full, or the tiles are larger than one request may copy; 403 if the
/// caller may not view an insight.
pub(in crate::resources::dashboards) fn duplicate(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    sent: &[DuplicateTile],
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let project = tenant.project.id;
    let mut copied = CopyBudget::new("duplicate_tiles");
    for (index, sent) in sent.iter().enumerate() {
        let id = &sent.id;
        let tile: Option<Tile> = tx.find(&(project, dashboard, TileId(*id)))?;
        let tile = tile.filter(|tile| !tile.meta.deleted).ok_or_else(|| {
            let detail = format!("Invalid pk \"{id}\" - object does not exist.");
            Error::field(format!("duplicate_tiles__{index}__id"), "does_not_exist", detail)
        })?;
        require_view(tx, tenant, tile.meta.content)?;
        copied.add_content(tx, project, tile.meta.content)?;
        let content = copy(tx, tenant, tile.meta.content, rng, now)?;
        let mut fields = tile.fields;
        fields.layouts.clear();
        sent.clone().apply_to(&mut fields);
        let style = TileStyle::of(fields);
        let copy = add(tx, tenant, dashboard, content, style)?;
        tx.view::<Tile, _>(&(project, dashboard, copy), |row| copied.add_tile(row.fields))?;
    }
    require_bounded(tx, project, dashboard)
}

/// Returns whether the caller may view the content of a tile on a dashboard that the caller may view.
fn can_view(tx: &impl Tx, tenant: &InProject, content: Content) -> Result<bool> {
    let Content::Insight(insight) = content else { return Ok(true) };
    let meta = tx.meta::<Insight>(&(tenant.project.id, insight))?;
    meta.map_or(Ok(false), |meta| Ok(level_on::<Insight>(tx, tenant, &meta)?.can_view()))
}

/// Requires that the caller may view the content of a tile on a dashboard that the caller may view.
///
/// # Errors
/// 403 otherwise.
pub(super) fn require_view(tx: &impl Tx, tenant: &InProject, content: Content) -> Result<()> {
    if can_view(tx, tenant, content)? {
        return Ok(());
    }
    AccessLevel::None.require(AccessLevel::Viewer)
}

/// Prepares another tile of the same content: the version of an insight counts its tiles.
fn share(tx: &mut WriteTx<'_>, project: ProjectId, content: Content) -> Result<()> {
    let Content::Insight(insight) = content else { return Ok(()) };
    let full = |error: Error| error.with_attr_prefix("use_dashboard");
    require_insight_room(tx, project, insight).map_err(full)?;
    tx.bump_version::<Insight>(&(project, insight))
}

fn copy(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    content: Content,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<Content> {
    Ok(match content {
        Content::Insight(id) => Content::Insight(insights::copy(tx, tenant, id, rng, now)?),
        Content::Text(id) => Content::Text(texts::copy(tx, tenant, id, now)?),
    })
}
