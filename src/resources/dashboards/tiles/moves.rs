//! Moving a tile to another dashboard. See `docs/spec/tiles.md`.

#![expect(non_snake_case, reason = "the API has a member in camel case")]

use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, ObjectBuilder};

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, ProjectId, TileId};
use crate::input;
use crate::input::{Identifier, Input, JsonObject, Nested, Parsed, Required, Schema};
use crate::resources::access_controls::shared::Shared;
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::Insight;
use crate::store::{Record, Tx, WriteTx};

use super::copies::require_view;
use super::input::TileRef;
use super::weight::require_bounded;
use super::{Content, Tile, keys_of, require_room};

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
        id.ok_or_else(|| Error::field("toDashboard", "required", "This field is required."))
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
    require_view(tx, tenant, tile.meta.content)?;
    delete_existing(tx, (project, destination), &tile)?;
    tx.remove::<Tile>(&tile.key())?;
    tile.meta.dashboard = destination;
    tx.put(&tile)?;
    require_bounded(tx, project, destination)?;
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
