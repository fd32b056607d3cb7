//! Tiles of dashboards. A tile shows either an insight or a text. See `docs/spec/tiles.md`.
//!
//! The tiles of a dashboard are one key range of one table. An insight or a text is on at most one tile of
//! a dashboard, soft-deleted tiles included.

pub(super) mod body;
mod change;
mod copies;
mod input;
mod weight;

use std::cmp::Ordering;

use crate::auth::InProject;
use crate::resources::access_controls::shared::require_can_create;
use crate::resources::shared::prelude::*;

use super::Dashboard;
use super::insights::{self, Insight, ListedTile};
use super::texts::{self, Text};

pub use body::{
    DeletedTileBody, MAX_LISTED, list_deleted, listed, live_tiles, place, require_view_of_all,
    withdraw,
};
pub(super) use change::{TileChanges, change, delete_all, restore_all};
pub use copies::{TileMove, move_tile};
pub(super) use copies::{copy_all, duplicate};
pub use input::{DuplicateTile, Tiles};
use weight::WEIGHT;
pub use weight::{large_answer, resizing_insight};

/// Maximum number of tiles of a dashboard, soft-deleted ones included.
pub const MAX_TILES: usize = 1_000;
/// Maximum number of tiles that show one insight, soft-deleted ones included.
pub const MAX_TILES_OF_INSIGHT: usize = 1_000;

/// A tile of a dashboard.
pub type Tile = RecordOf<Meta, Fields>;

/// Fields of a tile that access checks and the order of tiles read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the dashboard.
    pub project: ProjectId,
    /// The dashboard of the tile.
    pub dashboard: DashboardId,
    /// The ID of the tile.
    pub id: TileId,
    /// The insight or text on the tile.
    pub content: Content,
    /// Whether the tile is soft-deleted.
    pub deleted: bool,
    /// `layouts.sm.y` and `layouts.sm.x`.
    pub position: (f64, f64),
    /// Whether the tile was deleted once and restored.
    pub restored: bool,
}

impl Tile {
    /// Restores the tile if it is deleted.
    fn restore(&mut self) {
        self.meta.restored |= self.meta.deleted;
        self.meta.deleted = false;
    }
}

impl Meta {
    /// Returns what the JSON of the insight on the tile shows of the tile.
    pub(super) fn listed(&self) -> ListedTile {
        let Self { id, dashboard: dashboard_id, restored, .. } = *self;
        ListedTile { id, dashboard_id, deleted: restored.then_some(false) }
    }

    /// Orders the tiles of a dashboard: by position, then by ID.
    pub fn compare_position(&self, other: &Self) -> Ordering {
        let ((y, x), (other_y, other_x)) = (self.position, other.position);
        y.total_cmp(&other_y).then(x.total_cmp(&other_x)).then(self.id.cmp(&other.id))
    }
}

/// What a tile shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// An insight.
    Insight(InsightId),
    /// A text.
    Text(TextId),
}

impl Content {
    /// Returns the insight that the tile shows, if it shows one.
    pub const fn insight(self) -> Option<InsightId> {
        match self {
            Self::Insight(insight) => Some(insight),
            Self::Text(_) => None,
        }
    }
}

/// The stored fields of a tile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = TileFixed)]
pub struct Fields {
    /// Numeric ID.
    pub id: TileId,
    /// Layout for each screen width, for example `{"sm": {"x": 0, "y": 0, "w": 6, "h": 5}}`, as it was sent.
    pub layouts: Map<String, Value>,
    /// Color: any text.
    pub color: Option<String>,
    /// Whether the tile shows the description of its insight; null if the client decides.
    pub show_description: Option<bool>,
    /// Whether the tile has no background of its own; null if the client decides.
    pub transparent_background: Option<bool>,
    /// Filters of this tile alone, as they were sent. They have no effect, because queries are not run.
    pub filters_overrides: Map<String, Value>,
}

/// Tiles by the insight that they show, the live ones before the deleted ones.
pub const BY_INSIGHT: Index<Tile, (ProjectId, InsightId, bool)> =
    Index::many(Table::TilesByInsight, |tile| {
        Some((tile.meta.project, tile.meta.content.insight()?, tile.meta.deleted))
    });
/// Tiles by the text that they show. Deleted tiles are included, because they can be restored.
pub const BY_TEXT: Index<Tile, (ProjectId, TextId)> =
    Index::many(Table::TilesByText, |tile| match tile.meta.content {
        Content::Text(text) => Some((tile.meta.project, text)),
        Content::Insight(_) => None,
    });

impl_record!(Tile {
    table: Tiles,
    key: |tile| -> (ProjectId, DashboardId, TileId) {
        (tile.meta.project, tile.meta.dashboard, tile.meta.id)
    },
    parts: meta: Meta, fields: Fields,
    projection: |meta, fields| Meta { position: position(&fields.layouts), ..*meta },
    indexes: [&BY_INSIGHT, &BY_TEXT],
    counts: [
        |tile| Some((tile.meta.project, tile.meta.dashboard).encoded()),
        |tile| Some(of_insight(tile.meta.project, tile.meta.content.insight()?).encoded()),
    ],
    sums: [&WEIGHT],
    owner: |tile, _| Ok(Some(tile.meta.organization.owner())),
    references: |tile| {
        let Meta { project, dashboard, content, .. } = tile.meta;
        let content = match content {
            Content::Insight(insight) => Reference::to::<Insight>(&(project, insight)),
            Content::Text(text) => Reference::to::<Text>(&(project, text)),
        };
        [Reference::to::<Dashboard>(&(project, dashboard)), content]
    },
});

/// Returns `y` and `x` of the `sm` layout. As in PostHog, a coordinate that is missing or not numeric counts as 100.
fn position(layouts: &Map<String, Value>) -> (f64, f64) {
    let sm = layouts.get("sm");
    let of = |name| sm.and_then(|sm| sm.get(name)).and_then(number_of).unwrap_or(100.0);
    (of("y"), of("x"))
}

/// Returns the finite number of a coordinate. PostHog's clients also send numeric strings.
fn number_of(coordinate: &Value) -> Option<f64> {
    let number = match coordinate {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // The sum turns -0.0, which sorts before 0.0, into 0.0.
    number.is_finite().then_some(number + 0.0)
}

/// Adds a tile with a new insight of the caller. The caller has checked the fields.
///
/// # Errors
/// 403 if the caller may not create insights; 400 `max_length` if the dashboard is full.
pub fn add_insight(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    new: insights::Fields,
    fields: Fields,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<TileId> {
    require_can_create::<Insight>(tx, tenant)?;
    let insight = insights::create(tx, tenant, new, rng, now)?;
    add(tx, tenant, dashboard, Content::Insight(insight), fields)
}

/// Adds a tile with a new text of the caller. The caller has checked the length of `body`.
///
/// # Errors
/// 400 `max_length` if the dashboard is full.
pub fn add_text(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    body: Option<String>,
    fields: Fields,
    now: Timestamp,
) -> Result<TileId> {
    let text = texts::create(tx, tenant, body, now)?;
    add(tx, tenant, dashboard, Content::Text(text), fields)
}

/// Adds a tile. No tile of the dashboard may show `content` yet.
fn add(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    content: Content,
    fields: Fields,
) -> Result<TileId> {
    let project = tenant.project.id;
    require_room(tx, project, dashboard)?;
    let id = TileId(tx.next_number(Table::Tiles)?);
    tx.put(&Tile {
        meta: Meta {
            organization: tenant.project.organization,
            project,
            dashboard,
            id,
            content,
            deleted: false,
            position: position(&fields.layouts),
            restored: false,
        },
        fields: Fields { id, ..fields },
    })?;
    Ok(id)
}

fn require_room(tx: &dyn Raw, project: ProjectId, dashboard: DashboardId) -> Result<()> {
    if tx.count::<Tile>(&(project, dashboard))? < MAX_TILES as u64 {
        return Ok(());
    }
    let detail = format!("Ensure this field has no more than {MAX_TILES} elements.");
    Err(Error::field("tiles", "max_length", detail))
}

/// Requires that one more tile may show the insight.
///
/// # Errors
/// 400 `max_length` otherwise, without a field.
fn require_insight_room(tx: &dyn Raw, project: ProjectId, insight: InsightId) -> Result<()> {
    if tx.count::<Tile>(&of_insight(project, insight))? < MAX_TILES_OF_INSIGHT as u64 {
        return Ok(());
    }
    let most = MAX_TILES_OF_INSIGHT;
    Err(Error::invalid("max_length", format!("Ensure an insight has no more than {most} tiles.")))
}

/// Returns the key of the count of the tiles that show an insight. The last part distinguishes it from a dashboard.
const fn of_insight(project: ProjectId, insight: InsightId) -> (ProjectId, InsightId, bool) {
    (project, insight, true)
}

/// Returns the keys of the tiles of a dashboard that match `keep`, ordered by ID. Callers then read one
/// tile at a time, because parsed layouts take up to a hundred times the memory of their JSON.
fn keys_of(
    tx: &dyn Raw,
    dashboard: (ProjectId, DashboardId),
    mut keep: impl FnMut(&Meta) -> bool,
) -> Result<Vec<<Tile as Record>::Key>> {
    collect::<Tile, _, _>(tx, &dashboard, |tile| {
        keep(&tile).then_some((tile.project, tile.dashboard, tile.id))
    })
}
