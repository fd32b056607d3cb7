//! JSON of insights: the stored fields, followed by the fields that depend on tiles and on the caller.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::base::error::Result;
use crate::base::json::{Array, Either, JsonText, WriteJson, output};
use crate::base::time::Timestamp;
use crate::ids::{DashboardId, InsightId, TileId};
use crate::resources::access_controls::levels::{AccessLevel, ObjectRights, Restriction};
use crate::resources::shared::reading::parse_fields;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};
use crate::store::{Row, Tx};

use super::{Fields, Insight};

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
    tx: &impl Tx,
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
