//! Insights: stored queries, which tiles of several dashboards can show.
//!
//! The record is here because tiles show it; its routes and rules are in [`insights`](crate::resources::insights).
//! Queries are never run.

use std::convert::Infallible;
use std::str::FromStr;

use utoipa::PartialSchema;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::auth::InProject;
use crate::base::json::Either;
use crate::resources::access_controls::levels::{AccessLevel, ObjectRights, Restriction};
use crate::resources::access_controls::shared::{Shared, SharedMeta, require_can_create};
use crate::resources::dashboards::deletions::{self, Deletion};
use crate::resources::projects::Project;
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};

/// A stored query, shown on one or more tiles.
pub type Insight = RecordOf<Meta, Fields>;

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
    /// The user who last changed the insight.
    pub last_modified_by: Option<UserId>,
    /// Whether the insight is soft-deleted, which hides its tiles.
    pub deleted: bool,
}

/// The stored fields of an insight.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = InsightFixed)]
#[expect(clippy::struct_excessive_bools, reason = "the API has the fields")]
pub struct Fields {
    /// Numeric ID.
    pub id: InsightId,
    /// ID in links: 8 characters of `[0-9A-Za-z]`. Old ones may contain `_` and `-`.
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
    /// When a request to the insight itself last changed it.
    pub last_modified_at: Timestamp,
    /// A name that a client derived from the query. Kept as sent.
    pub derived_name: Option<String>,
    /// A number to sort by. Kept as sent.
    pub order: Option<i64>,
    /// Whether the insight is a favorite.
    pub favorited: bool,
    /// Whether the insight was saved on its own.
    pub saved: bool,
}

/// Insights by their short ID, deleted ones included.
pub const BY_SHORT_ID: Index<Insight, (ProjectId, String)> =
    Index::unique(Table::InsightsByShortId, |insight| {
        Some((insight.meta.project, insight.fields.short_id.clone()))
    });

impl_record!(Insight {
    table: Insights,
    key: |insight| -> (ProjectId, InsightId) { (insight.meta.project, insight.meta.id) },
    parts: meta: Meta, fields: Fields,
    projection: |meta, fields| Meta { deleted: fields.deleted, ..*meta },
    indexes: [&BY_SHORT_ID],
    // The number of live insights of a project.
    counts: [|insight| (!insight.meta.deleted).then(|| insight.meta.project.encoded())],
    owner: |insight, _| Ok(Some(insight.meta.organization.owner())),
    references: |insight| [
        Reference::to::<Project>(&(insight.meta.organization, insight.meta.project)),
    ],
});

/// The insight that a path names, by its number or by its short ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsightRef(String);

impl PartialSchema for InsightRef {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[0-9A-Za-z_-]+$"))
            .description(Some("The ID or the short ID."))
            .into()
    }
}

impl ToSchema for InsightRef {}

impl FromStr for InsightRef {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl Shared for Insight {
    const KIND: Kind = Kind::Insight;
    type Ref = InsightRef;

    fn key_of(project: ProjectId, number: u64) -> Self::Key {
        (project, InsightId(number))
    }

    fn shared(meta: &Meta) -> SharedMeta {
        let Meta { organization, project, id, created_by, deleted, .. } = *meta;
        SharedMeta { organization, project, object: Object::Insight(id), created_by, deleted }
    }

    /// Finds the insight that has this number, or else this short ID.
    fn find_named(tx: &dyn Raw, project: ProjectId, named: &InsightRef) -> Result<Option<Meta>> {
        let InsightRef(text) = named;
        // `parse` alone would also accept a plus sign.
        if text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(id) = text.parse()
            && let Some(meta) = tx.meta::<Self>(&(project, InsightId(id)))?
        {
            return Ok(Some(meta));
        }
        let key = tx.lookup(&BY_SHORT_ID, &(project, text.clone()))?;
        key.map_or(Ok(None), |key| tx.meta::<Self>(&key))
    }

    /// An insight has no restriction of its own.
    fn lets_edit(_: &dyn Raw, _: &InProject, _: &Meta) -> Result<bool> {
        Ok(true)
    }
}

/// Creates an insight of the caller with these fields, and with an ID, a short ID and times of its own. The caller has
/// checked the fields, and whether the user may create insights.
pub fn create(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    fields: Fields,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<InsightId> {
    let (project, me) = (tenant.project.id, Some(tenant.member.user));
    let id = InsightId(tx.next_number(Table::Insights)?);
    let mut short_id = rng.short_id();
    while tx.lookup(&BY_SHORT_ID, &(project, short_id.clone()))?.is_some() {
        short_id = rng.short_id();
    }
    let meta = Meta {
        organization: tenant.project.organization,
        project,
        id,
        created_by: me,
        last_modified_by: me,
        deleted: false,
    };
    let (created_at, updated_at, last_modified_at) = (now, now, now);
    let fields = Fields { id, short_id, created_at, updated_at, last_modified_at, ..fields };
    tx.put(&Insight { meta, fields })?;
    Ok(id)
}

/// Maximum length of an insight's name, in characters.
const MAX_NAME_LENGTH: usize = 400;

/// Copies an insight with its tags. A name gets the suffix ` (Copy)`, as in PostHog, and is cut if it
/// becomes too long.
///
/// # Errors
/// 403 if the caller may not create insights; 404 if the insight does not exist.
pub fn copy(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    id: InsightId,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<InsightId> {
    require_can_create::<Insight>(tx, tenant)?;
    let Insight { fields, .. } = tx.get(&(tenant.project.id, id))?;
    let name = fields.name.as_deref().map(copied);
    let fields = Fields { name, deleted: false, favorited: false, ..fields };
    create(tx, tenant, fields, rng, now)
}

fn copied(name: &str) -> String {
    const BEHIND: &str = " (Copy)";
    name.chars().take(MAX_NAME_LENGTH - BEHIND.len()).chain(BEHIND.chars()).collect()
}

/// Soft-deletes an insight with its dashboard. `last_modified_at` and `last_modified_by` do not change.
///
/// # Errors
/// 404 if the insight does not exist.
pub fn delete(
    tx: &mut WriteTx<'_>,
    key: (ProjectId, InsightId),
    user: UserId,
    now: Timestamp,
) -> Result<()> {
    let mut insight: Insight = tx.get(&key)?;
    if insight.fields.deleted {
        return Ok(());
    }
    insight.fields.deleted = true;
    insight.fields.updated_at = now;
    tx.put(&insight)?;
    deletions::record(tx, Insight::shared(&insight.meta), user, now)
}

/// Restores the insight of a restored tile. Increments the version of the insight even if it was not deleted.
///
/// # Errors
/// 404 if the insight does not exist.
pub(super) fn restore_with_tile(
    tx: &mut WriteTx<'_>,
    key: (ProjectId, InsightId),
    now: Timestamp,
) -> Result<()> {
    if tx.meta::<Insight>(&key)?.is_some_and(|meta| !meta.deleted) {
        return tx.bump_version::<Insight>(&key);
    }
    let mut insight: Insight = tx.get(&key)?;
    insight.fields.deleted = false;
    insight.fields.updated_at = now;
    tx.put(&insight)?;
    tx.remove::<Deletion>(&(key.0, Object::Insight(key.1))).map(drop)
}

output! {
    /// An insight.
    pub struct InsightBody<'a> as Insight {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        // Constant, because queries are not run and clients expect the fields.
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
        resolved_date_range: Value = null,
        alerts: Vec<Value> = [],
        last_viewed_at: Option<Timestamp> = null,
        /// The dashboards that show the insight and that the caller may see.
        #[schema(max_items = 1000)]
        dashboards: DashboardIds<'a> as Vec<DashboardId>,
        /// The tiles that show the insight on these dashboards.
        #[schema(max_items = 1000)]
        dashboard_tiles: &'a [ListedTile] as Vec<ListedTile>,
        /// The user who created the insight.
        created_by: EmbeddedUser as Option<users::Fields>,
        /// The user who last changed the insight.
        last_modified_by: EmbeddedUser as Option<users::Fields>,
        /// 21 if every project member may edit the insight; 37 if a dashboard that shows it is restricted.
        effective_restriction_level: i64 as Restriction,
        /// What the restriction lets the caller do: 21 for view, 37 for edit.
        effective_privilege_level: i64 as Restriction,
        /// The access level that access rules give the caller.
        user_access_level: AccessLevel,
        /// When the insight was deleted. Only in lists of deleted insights.
        deleted_at?: Timestamp,
        /// The user who deleted the insight. Only in lists of deleted insights.
        deleted_by?: EmbeddedUser as users::Fields,
    }
}

output! {
    /// An insight on a tile that the caller may not view.
    pub struct HiddenInsight<'a> {
        /// Numeric ID.
        id: InsightId,
        /// ID in links.
        short_id: &'a str as String,
        /// Always `none`.
        user_access_level: AccessLevel,
    }
}

/// An insight on a tile.
pub type TileInsight<'a> = Either<InsightBody<'a>, HiddenInsight<'a>>;

/// The names of an insight.
#[derive(Deserialize)]
pub struct InsightNames {
    /// Short ID.
    pub short_id: String,
    /// Display name.
    pub name: Option<String>,
    /// A name that a client derived from the query.
    pub derived_name: Option<String>,
}

/// Appends the JSON of an insight that the caller may not view.
pub fn write_hidden(row: &Row<'_, Insight>, out: &mut Vec<u8>) -> Result<()> {
    let InsightNames { short_id, .. } = parse_fields(row)?;
    let user_access_level = AccessLevel::None;
    HiddenInsight { id: row.meta.id, short_id: &short_id, user_access_level }.write_json(out)
}

/// A reference to a live tile that shows an insight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = InsightTile)]
pub struct ListedTile {
    /// Numeric ID.
    pub id: TileId,
    /// The dashboard of the tile.
    pub dashboard_id: DashboardId,
    /// Null if the tile was never deleted; false if it was restored.
    pub deleted: Option<bool>,
}

/// Returns the JSON of an insight that lists these tiles.
pub fn body<'a>(
    tx: &dyn Raw,
    row: &Row<'a, Insight>,
    tiles: &'a [ListedTile],
    rights: ObjectRights,
    users: &mut EmbeddedUsers,
) -> Result<InsightBody<'a>> {
    Ok(InsightBody {
        own: row.json(),
        dashboards: DashboardIds(tiles),
        dashboard_tiles: tiles,
        created_by: users.find(tx, row.meta.created_by)?,
        last_modified_by: users.find(tx, row.meta.last_modified_by)?,
        effective_restriction_level: rights.effective_restriction_level,
        effective_privilege_level: rights.effective_privilege_level,
        user_access_level: rights.user_access_level,
        deleted_at: None,
        deleted_by: None,
    })
}

/// The dashboards of the tiles.
pub struct DashboardIds<'a>(pub &'a [ListedTile]);

impl WriteJson for DashboardIds<'_> {
    fn write_json(self, out: &mut Vec<u8>) -> Result<()> {
        Array::write(out, |array| self.0.iter().try_for_each(|tile| array.push(tile.dashboard_id)))
    }
}
