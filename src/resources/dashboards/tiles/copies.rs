//! Copying tiles, and moving a tile to another dashboard. See `docs/spec/tiles.md`.

#![expect(non_snake_case, reason = "the API has a member in camel case")]

use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, ObjectBuilder};

use crate::auth::InProject;
use crate::input::{Identifier, Input, Nested, Required};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::shared::{Shared, level_on};
use crate::resources::dashboards::insights::{self, Insight};
use crate::resources::dashboards::{Dashboard, texts};
use crate::resources::shared::prelude::*;

use super::input::{DuplicateTile, TileRef};
use super::weight::{CopyBudget, require_bounded};
use super::{Content, Tile, add, keys_of, require_insight_room, require_room};

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
    let field = if deep { "duplicate_tiles" } else { "use_dashboard" };
    let mut copied = CopyBudget { bytes: 0, field };
    let mut ids = Vec::new();
    tx.scan::<Tile, _>(&(project, source), Window::all(Order::Ascending), |row| {
        if !row.meta.deleted {
            copied.add(row.fields.len() as u64)?;
            ids.push(row.meta.id);
        }
        Ok(())
    })?;
    for id in ids {
        let tile: Tile = tx.get(&(project, source, id))?;
        let mut content = tile.meta.content;
        if deep && level_of(tx, tenant, content)?.can_view() {
            copied.add_content(tx, project, content)?;
            content = copy(tx, tenant, content, rng, now)?;
        } else {
            share(tx, project, content)?;
        }
        add(tx, tenant, dashboard, content, tile.fields)?;
    }
    require_bounded(tx, (project, dashboard), "tiles")
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
    let mut copied = CopyBudget { bytes: 0, field: "duplicate_tiles" };
    for (index, sent) in sent.iter().enumerate() {
        let id = &sent.id;
        let tile: Option<Tile> = tx.find(&(project, dashboard, TileId(*id)))?;
        let unknown = || does_not_exist(format!("duplicate_tiles__{index}__id"), id);
        let tile = tile.filter(|tile| !tile.meta.deleted).ok_or_else(unknown)?;
        level_of(tx, tenant, tile.meta.content)?.require(AccessLevel::Viewer)?;
        copied.add_content(tx, project, tile.meta.content)?;
        let content = copy(tx, tenant, tile.meta.content, rng, now)?;
        let mut fields = tile.fields;
        fields.layouts.clear();
        sent.clone().apply_to(&mut fields);
        let copy = add(tx, tenant, dashboard, content, fields)?;
        tx.view::<Tile, _>(&(project, dashboard, copy), |row| copied.add(row.fields.len() as u64))?;
    }
    require_bounded(tx, (project, dashboard), "tiles")
}

/// Returns the caller's level on the content of a tile on a dashboard that the caller may view.
fn level_of(tx: &dyn Raw, tenant: &InProject, content: Content) -> Result<AccessLevel> {
    let Content::Insight(insight) = content else { return Ok(AccessLevel::Manager) };
    let meta = tx.meta::<Insight>(&(tenant.project.id, insight))?;
    meta.map_or(Ok(AccessLevel::None), |meta| level_on::<Insight>(tx, tenant, &meta))
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

input! {
    /// The fields of a request that moves a tile.
    struct TileMoveFields {
        /// The tile to move.
        tile: Required<Nested<TileRef>>,
        /// The destination dashboard.
        toDashboard: Identifier,
        /// The destination dashboard, used if `toDashboard` is absent.
        to_dashboard: Identifier,
    }
    ignored: [
        name, description, pinned, deleted, use_template, use_dashboard, delete_insights, tags,
        restriction_level,
    ]
}

/// A request that moves a tile. Names the destination as `toDashboard` or `to_dashboard`.
#[derive(Debug, Clone)]
pub struct TileMove(TileMoveFields);

impl Input for TileMove {
    const NAME: &'static str = "TileMove";

    fn parse(body: &JsonObject) -> Result<Self> {
        TileMoveFields::parse(body).map(Self)
    }

    fn schema() -> Schema {
        let either =
            ["toDashboard", "to_dashboard"].map(|name| ObjectBuilder::new().required(name));
        let either = either.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item);
        AllOfBuilder::new().item(TileMoveFields::schema()).item(either).into()
    }
}

impl TileMove {
    fn destination(&self) -> Result<DashboardId> {
        let id = self.0.toDashboard.or(self.0.to_dashboard).map(DashboardId);
        id.ok_or_else(|| missing("toDashboard"))
    }
}

/// Moves a tile to another dashboard of the project. The tile keeps its ID, layouts and color. A deleted
/// tile of the same insight or text on the destination is removed.
///
/// # Errors
/// 404 if a dashboard or the tile does not exist; 403 if the caller may not edit both dashboards, or may not view the
/// insight; 400 for an invalid field, if the destination shows the same insight or text, or if it is full.
pub fn move_tile(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    source: DashboardId,
    sent: &Parsed<TileMove>,
) -> Result<()> {
    let project = tenant.project.id;
    Dashboard::get_live(tx, project, &source)?.rights(tx, tenant)?.require_edit()?;
    let sent = sent.get()?;
    let destination = sent.destination()?;
    let rights = Dashboard::get_live(tx, project, &destination)?.rights(tx, tenant)?;
    rights.require_edit_of("the destination dashboard")?;
    let mut tile: Tile = tx.get(&(project, source, TileId(sent.0.tile.id)))?;
    if tile.meta.deleted {
        return Err(Error::not_found());
    }
    level_of(tx, tenant, tile.meta.content)?.require(AccessLevel::Viewer)?;
    delete_existing(tx, (project, destination), &tile)?;
    tx.remove::<Tile>(&tile.key())?;
    tile.meta.dashboard = destination;
    tx.put(&tile)?;
    require_bounded(tx, (project, destination), "tiles")?;
    for dashboard in [source, destination] {
        tx.log_about::<Dashboard>(&(project, dashboard));
        tx.bump_version::<Dashboard>(&(project, dashboard))?;
    }
    match tile.meta.content {
        Content::Insight(insight) => tx.bump_version::<Insight>(&(project, insight)),
        Content::Text(_) => Ok(()),
    }
}

fn delete_existing(
    tx: &mut WriteTx<'_>,
    (project, dashboard): (ProjectId, DashboardId),
    tile: &Tile,
) -> Result<()> {
    let twins = keys_of(tx, (project, dashboard), |twin| twin.content == tile.meta.content)?;
    for twin in twins {
        if tx.meta::<Tile>(&twin)?.is_some_and(|twin| !twin.deleted) {
            let detail = "Invalid request data for moving tile.";
            return Err(Error::invalid("invalid_input", detail));
        }
        tx.remove::<Tile>(&twin)?;
    }
    require_room(tx, project, dashboard)
}
