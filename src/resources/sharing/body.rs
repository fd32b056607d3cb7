//! What the public is shown of a dashboard (decisions §4, Sharing). Every member is named here, so that
//! nothing shows which nobody meant to show: no user, no address, no other dashboard.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::ids::{DashboardId, InsightId, ProjectId, TextId, TileId};
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::dashboards::tiles::{self, Content, Tile};
use crate::resources::dashboards::{self, Dashboard, Details, DetailsShown};
use crate::store::{Order, Tx, Window};
use crate::time::Timestamp;

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
    pub dashboard: Shared,
}

/// A dashboard as the public sees it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SharedDashboard)]
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
    /// Its live tiles, in their order.
    pub tiles: Vec<SharedTile>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A tile as the public sees it: with an insight or with a text.
#[derive(Debug, Serialize, ToSchema)]
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

/// An insight as the public sees it.
#[derive(Debug, Serialize, ToSchema)]
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
#[derive(Debug, Serialize, ToSchema)]
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
    /// What the public sees of a dashboard; none of one that is removed.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn find(tx: &impl Tx, key: (ProjectId, DashboardId)) -> Result<Option<Self>> {
        let Some(Dashboard { head, shown }) =
            tx.find(&key)?.filter(|it: &Dashboard| !it.head.deleted)
        else {
            return Ok(None);
        };
        let details: Option<Details> = tx.find(&key)?;
        let DetailsShown { filters, variables, .. } =
            details.map(|details| details.shown).unwrap_or_default();
        let dashboards::Shown { id, name, description, tags, created_at, .. } = shown;
        let tiles = find_tiles(tx, (head.project, id))?;
        Ok(Some(Self { id, name, description, tags, filters, variables, tiles, created_at }))
    }

    /// The public JSON.
    ///
    /// # Errors
    /// None in practice: everything in it has a JSON form.
    pub fn json(&self) -> Result<Vec<u8>> {
        #[derive(Serialize)]
        struct Envelope<'e> {
            dashboard: &'e Shared,
        }
        serde_json::to_vec(&Envelope { dashboard: self }).map_err(Error::internal)
    }
}

fn find_tiles(tx: &impl Tx, dashboard: (ProjectId, DashboardId)) -> Result<Vec<SharedTile>> {
    let mut live: Vec<Tile> = Vec::new();
    tx.scan::<Tile, _>(&dashboard, Window::all(Order::Ascending), |row| {
        if !row.head.deleted {
            live.push(row.into_record()?);
        }
        Ok(())
    })?;
    live.sort_by(|one, other| one.head.standing(&other.head));
    let mut shared = Vec::with_capacity(live.len());
    for tile in live {
        let (insight, text) = find_content(tx, &tile.head)?;
        if insight.is_some() || text.is_some() {
            let tiles::Shown { id, layouts, color } = tile.shown;
            let order = shared.len();
            shared.push(SharedTile { id, layouts, color, order, insight, text });
        }
    }
    Ok(shared)
}

/// What a tile shows; neither where that is removed.
fn find_content(
    tx: &impl Tx,
    tile: &tiles::Head,
) -> Result<(Option<SharedInsight>, Option<SharedText>)> {
    Ok(match tile.content {
        Content::Insight(id) => {
            let found: Option<Insight> = tx.find(&(tile.project, id))?;
            (found.filter(|insight| !insight.head.deleted).map(SharedInsight::from), None)
        }
        Content::Text(id) => {
            let found: Option<Text> = tx.find(&(tile.project, id))?;
            (None, found.map(SharedText::from))
        }
    })
}

impl From<Insight> for SharedInsight {
    fn from(Insight { shown, .. }: Insight) -> Self {
        Self {
            id: shown.id,
            short_id: shown.short_id,
            name: shown.name,
            description: shown.description,
            filters: shown.filters,
            query: shown.query,
            tags: shown.tags,
            created_at: shown.created_at,
            last_modified_at: shown.last_modified_at,
        }
    }
}

impl From<Text> for SharedText {
    fn from(Text { shown, .. }: Text) -> Self {
        Self { id: shown.id, body: shown.body, last_modified_at: shown.last_modified_at }
    }
}
