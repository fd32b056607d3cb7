//! What the public is shown of a dashboard (decisions §4, Sharing). Every member is named here, so that
//! nothing shows which nobody meant to show: no user, no address, no other dashboard.
//!
//! One tile is in memory at a time: parsed, a free-form field takes up to a hundred times the memory of its text.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::ids::{DashboardId, InsightId, TextId, TileId};
use crate::json::{Array, Object};
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::dashboards::tiles::{Content, Head, Tile};
use crate::resources::dashboards::{self, Dashboard, Details};
use crate::store::{Order, Record, Row, Tx, Window};
use crate::time::Timestamp;

use super::Of;

/// Whether a dashboard has a public page, and the key to it.
#[derive(ToSchema)]
#[schema(as = SharingConfiguration)]
pub struct SharingBody {
    /// Its own fields.
    #[serde(flatten)]
    pub own: super::Shown,
    /// The key to the page, while it is enabled. While it is not, only callers who may share the dashboard, by a key
    /// with `sharing_configuration:write`, are shown it; null for others, and where a request was sent again and is
    /// answered as before.
    pub access_token: Option<String>,
}

/// What the public JSON holds.
#[derive(ToSchema)]
#[schema(as = PublicDashboard)]
pub struct Public {
    /// The dashboard.
    pub dashboard: SharedBody,
}

/// A dashboard as the public sees it, with its tiles.
#[derive(ToSchema)]
#[schema(as = SharedDashboard)]
pub struct SharedBody {
    /// The dashboard itself.
    #[serde(flatten)]
    pub own: Shared,
    /// Its live tiles, in their order.
    pub tiles: Vec<SharedTile>,
}

/// A dashboard as the public sees it.
#[derive(ToSchema)]
#[schema(as = SharedDashboardFixed)]
pub struct Shared {
    /// Its number.
    pub id: DashboardId,
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: String,
    /// Words to find it by, sorted.
    pub tags: Vec<String>,
    /// What its tiles are filtered by.
    pub filters: Map<String, Value>,
    /// What its queries are given.
    pub variables: Map<String, Value>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The free-form fields of a dashboard.
#[derive(Default, Deserialize)]
struct FreeFields {
    filters: Map<String, Value>,
    variables: Map<String, Value>,
}

/// A tile as the public sees it: with an insight or with a text.
#[derive(Serialize, ToSchema)]
#[schema(as = SharedTile)]
pub struct SharedTile {
    /// Its number.
    pub id: TileId,
    /// Its place for each width of the screen.
    pub layouts: Map<String, Value>,
    /// Its colour; free.
    pub color: Option<String>,
    /// Its place in the order, from 0.
    pub order: usize,
    /// The insight on it.
    pub insight: Option<SharedInsight>,
    /// The text on it.
    pub text: Option<SharedText>,
}

/// A tile's own fields.
#[derive(Deserialize)]
struct TileFields {
    layouts: Map<String, Value>,
    color: Option<String>,
}

/// An insight as the public sees it.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = SharedInsight)]
pub struct SharedInsight {
    /// Its number.
    pub id: InsightId,
    /// What links call it.
    pub short_id: String,
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it asks, in the legacy form.
    pub filters: Map<String, Value>,
    /// What it asks.
    pub query: Option<Map<String, Value>>,
    /// Words to find it by, sorted.
    pub tags: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When what it asks last changed.
    pub last_modified_at: Timestamp,
}

/// A text as the public sees it.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = SharedText)]
pub struct SharedText {
    /// Its number.
    pub id: TextId,
    /// The Markdown.
    pub body: Option<String>,
    /// When it was written, or changed.
    pub last_modified_at: Timestamp,
}

impl Shared {
    /// What the public sees of a dashboard besides its tiles; none of one that is removed.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn find(tx: &impl Tx, key: Of) -> Result<Option<Self>> {
        let found: Option<Dashboard> = tx.find(&key)?;
        let Some(Dashboard { shown, .. }) = found.filter(|it| !it.head.deleted) else {
            return Ok(None);
        };
        let free = tx.view::<Details, _>(&key, |row| fields_of(&row))?;
        let FreeFields { filters, variables } = free.unwrap_or_default();
        let dashboards::Shown { id, name, description, tags, created_at, .. } = shown;
        Ok(Some(Self { id, name, description, tags, filters, variables, created_at }))
    }

    /// The public JSON.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn json(&self, tx: &impl Tx, key: Of) -> Result<Vec<u8>> {
        let dashboard = |out: &mut Vec<u8>| {
            Object::begin(out)
                .field("id", &self.id)?
                .field("name", &self.name)?
                .field("description", &self.description)?
                .field("tags", &self.tags)?
                .field("filters", &self.filters)?
                .field("variables", &self.variables)?
                .with("tiles", |out| write_tiles(tx, key, out))?
                .field("created_at", &self.created_at)?
                .end();
            Ok(())
        };
        let mut out = Vec::new();
        Object::begin(&mut out).with("dashboard", dashboard)?.end();
        Ok(out)
    }
}

fn write_tiles(tx: &impl Tx, dashboard: Of, out: &mut Vec<u8>) -> Result<()> {
    let mut array = Array::begin(out);
    for_each_tile(tx, dashboard, |tile| {
        array.item(|out| serde_json::to_writer(out, &tile).map_err(Error::internal))
    })?;
    array.end();
    Ok(())
}

/// Passes the live tiles of a dashboard to `show`, in their order, one after the other: those whose insight is not
/// removed.
///
/// # Errors
/// What `show` returns; 500 or 503 when the file cannot be read.
pub fn for_each_tile(
    tx: &impl Tx,
    dashboard: Of,
    mut show: impl FnMut(SharedTile) -> Result<()>,
) -> Result<()> {
    let mut live: Vec<Head> = Vec::new();
    tx.scan::<Tile, _>(&dashboard, Window::all(Order::Ascending), |row| {
        live.extend((!row.head.deleted).then_some(row.head));
        Ok(())
    })?;
    live.sort_by(Head::standing);
    let mut order = 0;
    for tile in live {
        let (insight, text) = find_content(tx, &tile)?;
        if insight.is_none() && text.is_none() {
            continue;
        }
        let key = (tile.project, tile.dashboard, tile.id);
        let Some(TileFields { layouts, color }) =
            tx.view::<Tile, _>(&key, |row| fields_of(&row))?
        else {
            continue;
        };
        show(SharedTile { id: tile.id, layouts, color, order, insight, text })?;
        order += 1;
    }
    Ok(())
}

/// What a tile shows; neither where that is removed.
fn find_content(tx: &impl Tx, tile: &Head) -> Result<(Option<SharedInsight>, Option<SharedText>)> {
    Ok(match tile.content {
        Content::Insight(id) => {
            let insight = tx.view::<Insight, _>(&(tile.project, id), |row| {
                if row.head.deleted { Ok(None) } else { fields_of(&row).map(Some) }
            })?;
            (insight.flatten(), None)
        }
        Content::Text(id) => {
            (None, tx.view::<Text, _>(&(tile.project, id), |row| fields_of(&row))?)
        }
    })
}

/// Some of the fields that a record shows.
fn fields_of<R: Record, T: DeserializeOwned>(row: &Row<'_, R>) -> Result<T> {
    serde_json::from_slice(row.shown).map_err(Error::internal)
}
