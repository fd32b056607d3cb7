//! Insights: the queries on insight tiles. Tiles of several dashboards can show the same insight.
//!
//! Insights are stored, copied, deleted and restored. Their queries are never run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::{DashboardId, InsightId, OrganizationId, ProjectId, TileId, UserId};
use crate::json::{Array, JsonText, WriteJson, output};
use crate::resources::access_controls::levels::{AccessLevel, DashboardRights, Restriction};
use crate::resources::projects::Project;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};
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

output! {
    /// An insight on a tile.
    pub struct InsightBody<'a> as Insight {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        // Constant, because queries are not run and clients expect the fields.
        derived_name: Option<String> = null,
        order: Option<i64> = null,
        favorited: bool = false,
        saved: bool = true,
        result: Value = null,
        columns: Value = null,
        hasMore: Option<bool> = null,
        timezone: Option<String> = null,
        last_refresh: Option<Timestamp> = null,
        next_allowed_client_refresh: Option<Timestamp> = null,
        query_status: Value = null,
        is_cached: bool = false,
        filters_hash: Option<String> = null,
        cache_target_age: Option<Timestamp> = null,
        hogql: Option<String> = null,
        types: Value = null,
        /// The dashboards that show the insight and that the caller may see; at most 100.
        dashboards: DashboardIds<'a> as Vec<DashboardId>,
        /// The tiles that show the insight on these dashboards; at most 100.
        dashboard_tiles: TileRefs<'a> as Vec<TileOf>,
        /// The user who created the insight.
        created_by: EmbeddedUser as Option<users::Fields>,
        /// The user who last changed the query.
        last_modified_by: EmbeddedUser as Option<users::Fields>,
        /// The value of the dashboard.
        effective_restriction_level: i64 as Restriction,
        /// The value of the dashboard.
        effective_privilege_level: i64 as Restriction,
        /// The value of the dashboard.
        user_access_level: AccessLevel,
    }
}

output! {
    /// A reference to a tile that shows an insight.
    pub struct TileOf as InsightTile {
        /// Numeric ID.
        id: TileId,
        /// The dashboard of the tile.
        dashboard_id: DashboardId,
        /// Null, because only live tiles are listed.
        deleted: Option<bool> = null,
    }
}

impl_record!(Insight {
    table: Insights,
    key: |insight| -> (ProjectId, InsightId) { (insight.meta.project, insight.meta.id) },
    parts: meta: Meta, fields: Fields,
    projection: |meta, fields| Meta { deleted: fields.deleted, ..*meta },
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

/// The key of a tile.
pub(super) type TileKey = (ProjectId, DashboardId, TileId);

/// Returns the JSON of an insight on a tile. `rights` are the caller's rights on the dashboard of that tile, and
/// `live` the tiles that the JSON lists.
pub(super) fn body<'a>(
    tx: &impl Tx,
    row: &Row<'a, Insight>,
    live: &'a [TileKey],
    rights: &DashboardRights,
    users: &mut EmbeddedUsers,
) -> Result<InsightBody<'a>> {
    Ok(InsightBody {
        own: row.json(),
        dashboards: DashboardIds(live),
        dashboard_tiles: TileRefs(live),
        created_by: users.find(tx, row.meta.created_by)?,
        last_modified_by: users.find(tx, row.meta.last_modified_by)?,
        effective_restriction_level: rights.effective_restriction_level,
        effective_privilege_level: rights.effective_privilege_level,
        user_access_level: rights.user_access_level,
    })
}

/// The dashboards of the tiles.
pub struct DashboardIds<'a>(&'a [TileKey]);

impl WriteJson for DashboardIds<'_> {
    fn write_json(self, out: &mut Vec<u8>) -> Result<()> {
        Array::write(out, |array| self.0.iter().try_for_each(|tile| array.push(tile.1)))
    }
}

/// References to the tiles.
pub struct TileRefs<'a>(&'a [TileKey]);

impl WriteJson for TileRefs<'_> {
    fn write_json(self, out: &mut Vec<u8>) -> Result<()> {
        Array::write(out, |array| {
            let mut tiles = self.0.iter();
            tiles.try_for_each(|&(_, dashboard_id, id)| array.push(TileOf { id, dashboard_id }))
        })
    }
}
