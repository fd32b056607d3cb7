//! Insights: the queries that tiles show (facts-dashboards §7). Tiles of several dashboards may show the
//! same one. Nothing is asked of them here: they are kept, copied, removed and brought back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::access::InProject;
use crate::access::levels::{AccessLevel, Rights};
use crate::error::Result;
use crate::ids::{DashboardId, InsightId, OrganizationId, ProjectId, TileId, UserId};
use crate::json::{Array, Object};
use crate::resources::projects::Project;
use crate::resources::users::{self, Embedder};
use crate::secret::Draw;
use crate::store::{Count, Key, Owner, Record, Reference, Row, Table, Tx, WriteTx};
use crate::time::Timestamp;

use super::input::Restriction;
use super::tiles;
use super::visible::VisibleDashboards;

/// An insight.
#[derive(Debug, Clone, PartialEq)]
pub struct Insight {
    /// What rules decide by.
    pub head: Head,
    /// What tiles show of it.
    pub shown: Shown,
}

/// What rules decide by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The organization of its project.
    pub organization: OrganizationId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// Its number.
    pub id: InsightId,
    /// Who made it.
    pub created_by: Option<UserId>,
    /// Who changed it last.
    pub last_modified_by: Option<UserId>,
    /// Whether it is soft-deleted, which hides its tiles.
    pub deleted: bool,
}

/// The insight's own fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = InsightFixed)]
pub struct Shown {
    /// Its number.
    pub id: InsightId,
    /// What links call it: 8 characters of [0-9A-Za-z_-].
    pub short_id: String,
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it asks, in the legacy form.
    pub filters: Map<String, Value>,
    /// What it asks.
    pub query: Option<Map<String, Value>>,
    /// Whether it is soft-deleted.
    pub deleted: bool,
    /// Whether it came with a template.
    pub is_sample: bool,
    /// Words to find it by, sorted.
    pub tags: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When the record last changed.
    pub updated_at: Timestamp,
    /// When what it asks last changed.
    pub last_modified_at: Timestamp,
}

/// An insight, as a tile shows it.
#[derive(ToSchema)]
#[schema(as = Insight)]
pub struct InsightBody {
    /// Its own fields.
    #[serde(flatten)]
    pub own: Shown,
    /// What every insight shows alike.
    #[serde(flatten)]
    pub constant: Constant,
    /// The dashboards that it stands on, of those that the caller may see; at most 100 are told.
    pub dashboards: Vec<DashboardId>,
    /// The tiles that show it, on those dashboards; at most 100 are told.
    pub dashboard_tiles: Vec<TileOf>,
    /// Who made it.
    pub created_by: Option<users::Shown>,
    /// Who changed it last.
    pub last_modified_by: Option<users::Shown>,
    /// The dashboard's.
    #[schema(value_type = Restriction)]
    pub effective_restriction_level: i64,
    /// The dashboard's.
    #[schema(value_type = Restriction)]
    pub effective_privilege_level: i64,
    /// The dashboard's.
    pub user_access_level: AccessLevel,
}

/// What every insight shows alike: there are no results, and nothing sets the other fields.
#[derive(ToSchema)]
#[allow(missing_docs, reason = "they say nothing here; clients expect them")]
pub struct Constant {
    pub derived_name: Option<String>,
    pub order: Option<i64>,
    pub favorited: bool,
    pub saved: bool,
    pub result: Value,
    pub columns: Value,
    #[serde(rename = "hasMore")]
    pub has_more: Option<bool>,
    pub timezone: Option<String>,
    pub last_refresh: Option<Timestamp>,
    pub next_allowed_client_refresh: Option<Timestamp>,
    pub query_status: Value,
    pub is_cached: bool,
    pub filters_hash: Option<String>,
    pub cache_target_age: Option<Timestamp>,
    pub hogql: Option<String>,
    pub types: Value,
}

/// A tile that shows an insight, in short.
#[derive(ToSchema)]
#[schema(as = InsightTile)]
pub struct TileOf {
    /// Its number.
    pub id: TileId,
    /// The dashboard it stands on.
    pub dashboard_id: DashboardId,
    /// Null: it is live.
    pub deleted: Option<bool>,
}

impl Record for Insight {
    const TABLE: Table = Table::Insights;
    /// The live insights of a project.
    const COUNTS: &'static [Count<Self>] =
        &[Count::per(|insight| (!insight.head.deleted).then(|| insight.head.project.encoded()))];
    type Key = (ProjectId, InsightId);
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> Self::Key {
        (self.head.project, self.head.id)
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.head.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Project>(&(self.head.organization, self.head.project))]
    }
}

/// What an insight is made of. `filters` and `query` are bounded by whoever took them in.
#[derive(Debug, Clone, PartialEq)]
pub struct NewInsight {
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it asks, in the legacy form; empty where there is a query.
    pub filters: Map<String, Value>,
    /// What it asks.
    pub query: Option<Map<String, Value>>,
    /// Whether it comes with a template.
    pub is_sample: bool,
    /// Words to find it by, sorted.
    pub tags: Vec<String>,
}

/// Makes an insight of the caller's.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn create(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    new: NewInsight,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<InsightId> {
    let NewInsight { name, description, filters, query, is_sample, tags } = new;
    let id = InsightId(tx.next_number(Table::Insights)?);
    let me = Some(place.member.user);
    tx.put(&Insight {
        head: Head {
            organization: place.project.organization,
            project: place.project.id,
            id,
            created_by: me,
            last_modified_by: me,
            deleted: false,
        },
        shown: Shown {
            id,
            short_id: draw.short_id(),
            name,
            description,
            filters,
            query,
            deleted: false,
            is_sample,
            tags,
            created_at: now,
            updated_at: now,
            last_modified_at: now,
        },
    })?;
    Ok(id)
}

/// The longest name of an insight, in characters.
const LONGEST_NAME: usize = 400;

/// Copies an insight with its tags; ` (Copy)` is put behind its name, if it has one (facts-dashboards §5).
/// A name that would grow too long is cut for it.
///
/// # Errors
/// 404 when there is none; 500 or 503 when the file cannot be read or written.
pub fn copy(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    id: InsightId,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<InsightId> {
    let Insight { shown, .. } = tx.get(&(place.project.id, id))?;
    let new = NewInsight {
        name: shown.name.map(|name| copied(&name)),
        description: shown.description,
        filters: shown.filters,
        query: shown.query,
        is_sample: shown.is_sample,
        tags: shown.tags,
    };
    create(tx, place, new, draw, now)
}

fn copied(name: &str) -> String {
    const BEHIND: &str = " (Copy)";
    name.chars().take(LONGEST_NAME - BEHIND.len()).chain(BEHIND.chars()).collect()
}

/// Removes an insight softly, or brings it back. What it asks stays as it was, and so does who changed
/// that last.
///
/// # Errors
/// 404 when there is none; 500 or 503 when the file cannot be read or written.
pub fn set_deleted(
    tx: &mut WriteTx<'_>,
    key: (ProjectId, InsightId),
    deleted: bool,
    now: Timestamp,
) -> Result<()> {
    if tx.head::<Insight>(&key)?.is_some_and(|head| head.deleted == deleted) {
        return Ok(());
    }
    let mut insight: Insight = tx.get(&key)?;
    insight.head.deleted = deleted;
    insight.shown.deleted = deleted;
    insight.shown.updated_at = now;
    tx.put(&insight)
}

/// How many bytes an insight adds to the weight of each dashboard that shows it: those of its JSON that
/// [`set_deleted`] leaves as they are, so that removing an insight moves no weight.
pub(super) fn weight(row: &Row<'_, Insight>) -> u64 {
    // The last members are `"updated_at":"..."` and `"last_modified_at":"..."`.
    let updated_at = row.shown.rsplit(|byte| *byte == b'"').nth(5).map_or(0, <[u8]>::len);
    // `true` is a byte shorter than `false`.
    (row.shown.len() + usize::from(row.head.deleted)).saturating_sub(updated_at) as u64
}

/// What every insight shows alike: there are no results, and nothing sets the other fields.
const CONSTANT: &[u8] = br#"{"derived_name":null,"order":null,"favorited":false,"saved":true,"result":null,"columns":null,"hasMore":null,"timezone":null,"last_refresh":null,"next_allowed_client_refresh":null,"query_status":null,"is_cached":false,"filters_hash":null,"cache_target_age":null,"hogql":null,"types":null}"#;

/// How many of the tiles that show it an insight lists at the most.
const LISTED: usize = 100;
/// How many tiles are looked at for that, where some dashboards are hidden from the caller.
const LOOKED_AT: usize = 1_000;

/// Appends an insight as a tile of the dashboard `read` shows it, to a caller who has `rights` on that. It lists only
/// `visible` dashboards.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn write(
    tx: &impl Tx,
    row: &Row<'_, Insight>,
    read: DashboardId,
    rights: &Rights,
    visible: &mut VisibleDashboards<'_>,
    users: &mut Embedder,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Head { project, id, created_by, last_modified_by, .. } = row.head;
    let live = visible_tiles(tx, (project, id), read, visible)?;
    Object::begin(out)
        .splice(row.shown)
        .splice(CONSTANT)
        .with("dashboards", |out| write_dashboards(&live, out))?
        .with("dashboard_tiles", |out| write_tiles(&live, out))?
        .with("created_by", |out| users.write(tx, created_by, out))?
        .with("last_modified_by", |out| users.write(tx, last_modified_by, out))?
        .field("effective_restriction_level", &rights.effective_restriction_level)?
        .field("effective_privilege_level", &rights.effective_privilege_level)?
        .field("user_access_level", &rights.user_access_level)?
        .end();
    Ok(())
}

type TileKey = (ProjectId, DashboardId, TileId);

/// The first live tiles that show an insight, without those on dashboards that are hidden from the caller; always
/// with the one on the dashboard `read`.
fn visible_tiles(
    tx: &impl Tx,
    insight: (ProjectId, InsightId),
    read: DashboardId,
    visible: &mut VisibleDashboards<'_>,
) -> Result<Vec<TileKey>> {
    let looked_at = if visible.are_all() { LISTED } else { LOOKED_AT };
    let mut shown = Vec::new();
    for tile in tx.keys(&tiles::BY_INSIGHT, &insight, looked_at)? {
        if shown.len() < LISTED && visible.shows(tx, tile.1)? {
            shown.push(tile);
        }
    }
    if shown.iter().all(|tile| tile.1 != read) {
        // It stands behind all that were looked at, for they are sorted by dashboard.
        shown.truncate(LISTED - 1);
        shown.extend(tx.keys(&tiles::BY_INSIGHT, &(insight, (insight.0, read)), 1)?);
    }
    Ok(shown)
}

fn write_dashboards(live: &[TileKey], out: &mut Vec<u8>) -> Result<()> {
    let mut array = Array::begin(out);
    for (_, dashboard, _) in live {
        array.item(|out| {
            out.extend_from_slice(dashboard.to_string().as_bytes());
            Ok(())
        })?;
    }
    array.end();
    Ok(())
}

fn write_tiles(live: &[TileKey], out: &mut Vec<u8>) -> Result<()> {
    let mut array = Array::begin(out);
    for (_, dashboard, tile) in live {
        array.item(|out| {
            Object::begin(out)
                .field("id", tile)?
                .field("dashboard_id", dashboard)?
                .raw("deleted", b"null")
                .end();
            Ok(())
        })?;
    }
    array.end();
    Ok(())
}
