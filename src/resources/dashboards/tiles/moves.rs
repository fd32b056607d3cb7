//! Moving a tile to another dashboard (API document; facts-dashboards §7, `move_tile`).

#![expect(non_snake_case, reason = "a member of the API is written so")]
#![expect(
    dead_code,
    reason = "what is without effect is declared for the schema, and read by nobody"
)]

use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, ObjectBuilder};

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, ProjectId, TileId};
use crate::input;
use crate::input::{Identifier, Input, JsonObject, Nested, Parsed, Required, Schema, Untyped};
use crate::resources::dashboards::{Dashboard, live};
use crate::store::{Record, Tx, WriteTx};

use super::input::TileRef;
use super::weight::require_bounded;
use super::{Tile, keys_of, require_room};

input! {
    /// Which tile is to stand where.
    struct TileMoveFields {
        /// The tile.
        tile: Required<Nested<TileRef>>,
        /// The dashboard it is moved to.
        toDashboard: Identifier,
        /// The same.
        to_dashboard: Identifier,
        /// Without effect.
        name: Untyped,
        /// Without effect.
        description: Untyped,
        /// Without effect.
        pinned: Untyped,
        /// Without effect.
        deleted: Untyped,
        /// Without effect.
        use_template: Untyped,
        /// Without effect.
        use_dashboard: Untyped,
        /// Without effect.
        delete_insights: Untyped,
        /// Without effect.
        tags: Untyped,
        /// Without effect.
        restriction_level: Untyped,
    }
}

/// A tile to move. Either spelling of the dashboard does.
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

/// Moves a tile from one dashboard of the project to another. What stands on the other already, removed,
/// makes way; the tile keeps its number, its place and its colour.
///
/// # Errors
/// 404 for a dashboard or a tile that is not there; 403 where the caller may not edit both dashboards; 400
/// for a field, for a tile whose insight or text the other dashboard shows, or for one that is full.
pub fn move_tile(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    source: DashboardId,
    sent: &Parsed<TileMove>,
) -> Result<()> {
    let project = place.project.id;
    live(tx, project, source)?.head.rights(tx, place)?.require_edit()?;
    let sent = sent.get()?;
    let destination = sent.destination()?;
    let rights = live(tx, project, destination)?.head.rights(tx, place)?;
    rights.require_edit_of("the destination dashboard")?;
    let mut tile: Tile = tx.get(&(project, source, TileId(sent.0.tile.id)))?;
    if tile.head.deleted {
        return Err(Error::not_found());
    }
    make_way(tx, (project, destination), &tile)?;
    tx.remove::<Tile>(&tile.key())?;
    tile.head.dashboard = destination;
    tx.put(&tile)?;
    require_bounded(tx, project, destination)?;
    tx.touch::<Dashboard>(&(project, source))?;
    tx.touch::<Dashboard>(&(project, destination))
}

fn make_way(
    tx: &mut WriteTx<'_>,
    (project, dashboard): (ProjectId, DashboardId),
    tile: &Tile,
) -> Result<()> {
    let twins = keys_of(tx, (project, dashboard), |twin| twin.content == tile.head.content)?;
    for twin in twins {
        if tx.head::<Tile>(&twin)?.is_some_and(|twin| !twin.deleted) {
            let detail = "Invalid request data for moving tile.";
            return Err(Error::invalid("invalid_input", detail));
        }
        tx.remove::<Tile>(&twin)?;
    }
    require_room(tx, project, dashboard)
}
