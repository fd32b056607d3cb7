//! Insights: the queries on insight tiles. Tiles of several dashboards can show the same insight.
//!
//! Insights are stored, copied, deleted and restored. Their queries are never run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::{DashboardId, InsightId, OrganizationId, ProjectId, TileId, UserId};
use crate::json::{Array, Object};
use crate::resources::access_controls::levels::{AccessLevel, DashboardRights, Restriction};
use crate::resources::projects::Project;
use crate::resources::users::{self, EmbeddedUserWriter};
use crate::secret::SeededRng;
use crate::store::{Key, Reference, Row, Table, Tx, WriteTx, impl_record};
use crate::time::Timestamp;

/// A stored query, shown on one or more tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Insight {
    /// Fields that access checks and counts read.
    pub meta: Meta,
    /// Fields as the API returns them.
    pub fields: Fields,
}

/// Fields of an insight that access checks and counts read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the insight.
    pub project: ProjectId,
    /// The ID of the insight.
    pub id: InsightId,
    /// The user who created the insight.
    pub created_by: Option<UserId>,
    /// The user who last changed the query.
    pub last_modified_by: Option<UserId>,
    /// Whether the insight is soft-deleted, which hides its tiles.
    pub deleted: bool,
}

/// The stored fields of an insight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = InsightFixed)]
pub struct Fields {
    /// Numeric ID.
    pub id: InsightId,
    /// ID in links: 8 characters of `[0-9A-Za-z_-]`.
    pub short_id: String,
    /// Display name.
    pub name: Option<String>,
    /// Description in plain text.
    pub description: Option<String>,
    /// The query in the legacy format; empty if `query` is set.
    pub filters: Map<String, Value>,
    /// The query. It is stored as sent, and never run.
    pub query: Option<Map<String, Value>>,
    /// Whether the insight is deleted.
    pub deleted: bool,
    /// Whether the insight comes from a template.
    pub is_sample: bool,
    /// Tags in lower case, sorted.
    pub tags: Vec<String>,
    /// When the insight was created.
    pub created_at: Timestamp,
    /// When any field last changed.
    pub updated_at: Timestamp,
    /// When the query last changed.
    pub last_modified_at: Timestamp,
}

/// An insight on a tile.
#[derive(ToSchema)]
#[schema(as = Insight)]
pub struct InsightBody {
    /// The stored fields.
    #[serde(flatten)]
    pub own: Fields,
    /// The fields that are the same for every insight.
    #[serde(flatten)]
    pub constant: FixedFields,
    /// The dashboards that show the insight and that the caller may see; at most 100.
    pub dashboards: Vec<DashboardId>,
    /// The tiles that show the insight on these dashboards; at most 100.
    pub dashboard_tiles: Vec<TileOf>,
    /// The user who created the insight.
    pub created_by: Option<users::Fields>,
    /// The user who last changed the query.
    pub last_modified_by: Option<users::Fields>,
    /// The value of the dashboard.
    #[schema(value_type = Restriction)]
    pub effective_restriction_level: i64,
    /// The value of the dashboard.
    #[schema(value_type = Restriction)]
    pub effective_privilege_level: i64,
    /// The value of the dashboard.
    pub user_access_level: AccessLevel,
}

/// Fields that are the same for every insight. Queries are not run, so there are no results.
#[derive(ToSchema)]
#[allow(
    missing_docs,
    reason = "the fields are constant, and exist only because clients expect them"
)]
pub struct FixedFields {
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

/// A reference to a tile that shows an insight.
#[derive(ToSchema)]
#[schema(as = InsightTile)]
pub struct TileOf {
    /// Numeric ID.
    pub id: TileId,
    /// The dashboard of the tile.
    pub dashboard_id: DashboardId,
    /// Null, because only live tiles are listed.
    pub deleted: Option<bool>,
}

impl_record!(Insight {
    table: Insights,
    key: |insight| -> (ProjectId, InsightId) { (insight.meta.project, insight.meta.id) },
    parts: meta: Meta, fields: Fields,
    // The number of live insights of a project.
    counts: [|insight| (!insight.meta.deleted).then(|| insight.meta.project.encoded())],
    owner: |insight, _| Ok(Some(insight.meta.organization.owner())),
    references: |insight| [
        Reference::to::<Project>(&(insight.meta.organization, insight.meta.project)),
    ],
});

/// The fields of a new insight. The caller has checked the size of `filters` and `query`.
#[derive(Debug, Clone, PartialEq)]
pub struct NewInsight {
    /// Display name.
    pub name: Option<String>,
    /// Description in plain text.
    pub description: Option<String>,
    /// The query in the legacy format; empty if `query` is set.
    pub filters: Map<String, Value>,
    /// The query.
    pub query: Option<Map<String, Value>>,
    /// Whether the insight comes from a template.
    pub is_sample: bool,
    /// Tags in lower case, sorted.
    pub tags: Vec<String>,
}

/// Creates an insight of the caller.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn create(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    new: NewInsight,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<InsightId> {
    let NewInsight { name, description, filters, query, is_sample, tags } = new;
    let id = InsightId(tx.next_number(Table::Insights)?);
    let me = Some(tenant.member.user);
    tx.put(&Insight {
        meta: Meta {
            organization: tenant.project.organization,
            project: tenant.project.id,
            id,
            created_by: me,
            last_modified_by: me,
            deleted: false,
        },
        fields: Fields {
            id,
            short_id: rng.short_id(),
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

/// Maximum length of an insight's name, in characters.
const MAX_NAME_LENGTH: usize = 400;

/// Copies an insight with its tags. A name gets the suffix ` (Copy)`, as in PostHog, and is cut if it
/// becomes too long.
///
/// # Errors
/// 404 if the insight does not exist; 500 or 503 when the file cannot be read or written.
pub fn copy(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    id: InsightId,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<InsightId> {
    let Insight { fields, .. } = tx.get(&(tenant.project.id, id))?;
    let new = NewInsight {
        name: fields.name.map(|name| copied(&name)),
        description: fields.description,
        filters: fields.filters,
        query: fields.query,
        is_sample: fields.is_sample,
        tags: fields.tags,
    };
    create(tx, tenant, new, rng, now)
}

fn copied(name: &str) -> String {
    const BEHIND: &str = " (Copy)";
    name.chars().take(MAX_NAME_LENGTH - BEHIND.len()).chain(BEHIND.chars()).collect()
}

/// Soft-deletes or restores an insight. `last_modified_at` and `last_modified_by` do not change.
///
/// # Errors
/// 404 if the insight does not exist; 500 or 503 when the file cannot be read or written.
pub fn set_deleted(
    tx: &mut WriteTx<'_>,
    key: (ProjectId, InsightId),
    deleted: bool,
    now: Timestamp,
) -> Result<()> {
    if tx.meta::<Insight>(&key)?.is_some_and(|meta| meta.deleted == deleted) {
        return Ok(());
    }
    let mut insight: Insight = tx.get(&key)?;
    insight.meta.deleted = deleted;
    insight.fields.deleted = deleted;
    insight.fields.updated_at = now;
    tx.put(&insight)
}

/// Returns the number of bytes that an insight adds to the weight of each dashboard that shows it. Leaves
/// out what [`set_deleted`] changes, so that deleting an insight changes no weight.
///
/// # Errors
/// 500 if the size cannot be computed.
pub(super) fn weight(row: &Row<'_, Insight>) -> Result<u64> {
    const UPDATED_AT: &[u8] = br#","updated_at":""#;
    // The insight's own member is the last with this name: `query` and `filters` come before it.
    let found = row.fields.windows(UPDATED_AT.len()).rposition(|window| window == UPDATED_AT);
    let value = found.and_then(|at| row.fields.get(at + UPDATED_AT.len()..)).unwrap_or_default();
    let updated_at = value.iter().position(|byte| *byte == b'"').unwrap_or(0) as u64;
    // `true` is a byte shorter than `false`.
    Ok((row.base_size()? + u64::from(row.meta.deleted)).saturating_sub(updated_at))
}

/// The fields that are the same for every insight, as JSON.
const FIXED_FIELDS: &[u8] = br#"{"derived_name":null,"order":null,"favorited":false,"saved":true,"result":null,"columns":null,"hasMore":null,"timezone":null,"last_refresh":null,"next_allowed_client_refresh":null,"query_status":null,"is_cached":false,"filters_hash":null,"cache_target_age":null,"hogql":null,"types":null}"#;

/// The key of a tile.
pub(super) type TileKey = (ProjectId, DashboardId, TileId);

/// Appends the JSON of an insight on a tile. `rights` are the caller's rights on the dashboard of that tile, and
/// `live` the tiles that the JSON lists.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn write(
    tx: &impl Tx,
    row: &Row<'_, Insight>,
    live: &[TileKey],
    rights: &DashboardRights,
    users: &mut EmbeddedUserWriter,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Meta { created_by, last_modified_by, .. } = row.meta;
    Object::begin(out)
        .splice(row.fields)
        .splice(FIXED_FIELDS)
        .with("dashboards", |out| write_dashboards(live, out))?
        .with("dashboard_tiles", |out| write_tiles(live, out))?
        .with("created_by", |out| users.write(tx, created_by, out))?
        .with("last_modified_by", |out| users.write(tx, last_modified_by, out))?
        .field("effective_restriction_level", &rights.effective_restriction_level)?
        .field("effective_privilege_level", &rights.effective_privilege_level)?
        .field("user_access_level", &rights.user_access_level)?
        .end();
    Ok(())
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
