//! The public view of a dashboard or an insight, and what sharing declares about its records. Every public field is
//! listed here, so that no new field becomes public by accident. No user, e-mail address or other object is public.
//!
//! Tiles are read one at a time, because a parsed free-form field takes up to a hundred times the memory of its JSON.

use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::dashboards::tiles::{Content, Meta, Tile};
use crate::resources::dashboards::{self, Dashboard, Details, DetailsFields};
use crate::resources::projects;
use crate::resources::shared::prelude::*;

use super::{Fields, REDACTION, Sharing};

/// The key of a dashboard.
pub type DashboardKey = (ProjectId, DashboardId);

/// Whether an object has a public page, and the token of the page.
#[derive(Serialize, ToSchema)]
#[schema(as = SharingConfiguration)]
pub struct SharingBody {
    /// When sharing was first enabled.
    pub created_at: Option<Timestamp>,
    /// Whether the object has a public page.
    pub enabled: bool,
    /// The token of the public page at `/shared/<token>/`. While the page is disabled, the token is null
    /// unless the caller may share the object and uses a key with `sharing_configuration:write`. In the
    /// replay of an idempotent request it is always null.
    pub access_token: Option<String>,
}

output! {
    /// The public JSON of a shared dashboard.
    pub struct PublicDashboard<'a> {
        /// The shared dashboard.
        dashboard: SharedBody<'a>,
    }
}

output! {
    /// The public fields of a dashboard, with its tiles.
    pub struct SharedBody<'a> as SharedDashboard {
        /// Numeric ID.
        id: DashboardId,
        /// Display name.
        name: Option<String>,
        /// Description in plain text.
        description: String,
        /// Tags in lower case, sorted.
        tags: Vec<String>,
        /// Filters that apply to every tile.
        filters: Map<String, Value>,
        /// Values for the variables in the queries of tiles.
        variables: Map<String, Value>,
        /// The live tiles, ordered by position.
        tiles: WrittenBy<'a> as Vec<SharedTile>,
        /// When the dashboard was created.
        created_at: Timestamp,
    }
}

output! {
    /// The public JSON of a shared insight.
    pub struct PublicInsight {
        /// The shared insight.
        insight: SharedInsight,
    }
}

/// The public fields of a tile. Either `insight` or `text` is set, and the other is null.
#[derive(Serialize, ToSchema)]
#[schema(as = SharedTile)]
pub struct SharedTile {
    /// Numeric ID.
    pub id: TileId,
    /// Layout for each screen width.
    pub layouts: Map<String, Value>,
    /// Color: any text.
    pub color: Option<String>,
    /// Position of the tile in the list, from 0.
    pub order: usize,
    /// The insight on the tile.
    pub insight: Option<SharedInsight>,
    /// The text on the tile.
    pub text: Option<SharedText>,
}

/// The stored fields of a tile that are public. The others, some of them free-form, are not parsed.
#[derive(Deserialize)]
struct TileFields {
    layouts: Map<String, Value>,
    color: Option<String>,
}

/// The public fields of an insight.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = SharedInsight)]
pub struct SharedInsight {
    /// Numeric ID.
    pub id: InsightId,
    /// ID in links.
    pub short_id: String,
    /// Display name.
    pub name: Option<String>,
    /// A name that a client derived from the query.
    pub derived_name: Option<String>,
    /// Description in plain text.
    pub description: Option<String>,
    /// The query in the legacy format; empty if `query` is set.
    pub filters: Map<String, Value>,
    /// The query.
    pub query: Option<Map<String, Value>>,
    /// Tags in lower case, sorted.
    pub tags: Vec<String>,
    /// When the insight was created.
    pub created_at: Timestamp,
    /// When a request to the insight itself last changed it.
    pub last_modified_at: Timestamp,
}

/// The public fields of a text.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = SharedText)]
pub struct SharedText {
    /// Numeric ID.
    pub id: TextId,
    /// Markdown.
    pub body: Option<String>,
    /// When the text was created or last changed.
    pub last_modified_at: Timestamp,
}

/// Returns the fields of a dashboard.
///
/// # Errors
/// 404 if it does not exist or is deleted.
pub fn get_dashboard(tx: &dyn Raw, key: DashboardKey) -> Result<dashboards::Fields> {
    let Dashboard { meta, fields } = tx.get(&key)?;
    if meta.deleted { Err(Error::not_found()) } else { Ok(fields) }
}

/// Renders the public JSON of a dashboard, with tiles.
///
/// # Errors
/// As for [`get_dashboard`].
pub fn dashboard_json(tx: &dyn Raw, key: DashboardKey) -> Result<Vec<u8>> {
    let dashboards::Fields { id, name, description, tags, created_at, .. } =
        get_dashboard(tx, key)?;
    let details = tx.find::<Details>(&key)?.map(|details| details.fields).unwrap_or_default();
    let DetailsFields { filters, variables, .. } = details;
    let tiles = WrittenBy(&mut |out| {
        Array::write(out, |array| for_each_tile(tx, key, |tile| array.push(tile)))
    });
    let dashboard =
        SharedBody { id, name, description, tags, filters, variables, tiles, created_at };
    PublicDashboard { dashboard }.to_json(0)
}

/// Passes the live tiles of a dashboard to `show` one at a time, ordered by position. Skips tiles whose
/// insight is deleted.
pub fn for_each_tile(
    tx: &dyn Raw,
    dashboard: DashboardKey,
    mut show: impl FnMut(SharedTile) -> Result<()>,
) -> Result<()> {
    let mut live: Vec<Meta> =
        collect::<Tile, _, _>(tx, &dashboard, |tile| (!tile.deleted).then_some(tile))?;
    live.sort_by(Meta::compare_position);
    let mut order = 0;
    for tile in live {
        let (insight, text) = find_content(tx, &tile)?;
        if insight.is_none() && text.is_none() {
            continue;
        }
        let key = (tile.project, tile.dashboard, tile.id);
        let found = tx.view::<Tile, _>(&key, |row| parse_fields(&row))?;
        let Some(TileFields { layouts, color }) = found else { continue };
        show(SharedTile { id: tile.id, layouts, color, order, insight, text })?;
        order += 1;
    }
    Ok(())
}

/// Reads the insight or the text on a tile; neither if the insight is deleted.
fn find_content(tx: &dyn Raw, tile: &Meta) -> Result<(Option<SharedInsight>, Option<SharedText>)> {
    Ok(match tile.content {
        Content::Insight(id) => (SharedInsight::find(tx, (tile.project, id))?, None),
        Content::Text(id) => {
            (None, tx.view::<Text, _>(&(tile.project, id), |row| parse_fields(&row))?)
        }
    })
}

impl SharedInsight {
    /// Reads the public fields of an insight.
    ///
    /// # Errors
    /// 404 if it does not exist or is deleted.
    pub fn get(tx: &dyn Raw, key: (ProjectId, InsightId)) -> Result<Self> {
        Self::find(tx, key)?.ok_or_else(Error::not_found)
    }

    /// Reads the public fields of an insight; `None` if it does not exist or is deleted.
    fn find(tx: &dyn Raw, key: (ProjectId, InsightId)) -> Result<Option<Self>> {
        let found = tx.view::<Insight, _>(&key, |row| {
            if row.meta.deleted { Ok(None) } else { parse_fields(&row).map(Some) }
        })?;
        Ok(found.flatten())
    }

    /// Renders the public JSON.
    ///
    /// # Errors
    /// 500 if a value cannot be written as JSON.
    pub fn json(self) -> Result<Vec<u8>> {
        PublicInsight { insight: self }.to_json(1024)
    }
}

/// The records of sharing.
pub const RECORDS: &[&dyn RegisteredRecord] =
    &[&record::<Sharing>().redacted(REDACTION).logged().deleted_with_project()];

impl Loggable for Sharing {
    const SCOPE: &'static str = Dashboard::SCOPE;
    const HIDDEN: &'static [&'static str] = &["access_token"];

    fn scope(meta: &Self::Meta) -> &'static str {
        match meta.object {
            Object::Dashboard(_) => Dashboard::SCOPE,
            Object::Insight(_) => Insight::SCOPE,
        }
    }

    fn entity(meta: &Self::Meta, tx: &impl Tx) -> Result<LogEntity> {
        let organization = projects::organization_of(tx, meta.project)?;
        Ok(LogEntity::new(meta.object.number(), organization, Some(meta.project)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(meta.object.reference(meta.project))
    }

    fn blank() -> Result<Option<Map<String, Value>>> {
        Ok(Some(logged_fields(0, false)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let fields: Fields = parse_fields(row)?;
        Ok(logged_fields(row.meta.serial, fields.enabled))
    }
}

/// Returns the fields that the log compares. The serial number stands for the access token.
fn logged_fields(serial: u64, enabled: bool) -> Map<String, Value> {
    let fields = [("access_token", serial.into()), ("is_shared", enabled.into())];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
