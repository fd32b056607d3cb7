//! What the API reads and shows of insights. See `docs/spec/insights.md`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;

use utoipa::openapi::schema::ArrayBuilder;

use crate::auth::InProject;
use crate::base::json::Either;
use crate::input::{
    Flag, FreeObject, Identifier, Integer, Nullable, ParsedWithKept, Tags, Text, python_type,
};
use crate::resources::access_controls::levels::{self, AccessLevel};
use crate::resources::access_controls::rules;
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::deletions::Deletion;
use crate::resources::dashboards::insights::{
    self, DashboardIds, Fields, Insight, InsightBody, ListedTile,
};
use crate::resources::dashboards::tiles::{self, MAX_TILES_OF_INSIGHT, Tile};
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};

use super::InsightView;

/// `query`: a [`FreeObject`] with PostHog's error for other types.
pub struct Query;

impl FieldType for Query {
    type Value = JsonObject;

    fn read(value: &Value) -> Result<JsonObject> {
        if !value.is_object() {
            return Err(Error::invalid("invalid_input", "Query must be a valid JSON object"));
        }
        FreeObject::read(value)
    }

    fn schema() -> Schema {
        FreeObject::schema()
    }
}

/// `dashboards`: the IDs of at most 1,000 dashboards, in any order and possibly repeated. The rule checks whether they
/// exist.
pub struct DashboardSet;

impl FieldType for DashboardSet {
    type Value = BTreeSet<DashboardId>;

    fn read(value: &Value) -> Result<Self::Value> {
        let Value::Array(ids) = value else {
            let name = python_type(value);
            let detail = format!("Expected a list of items but got type \"{name}\".");
            return Err(Error::invalid("not_a_list", detail));
        };
        if ids.len() > MAX_TILES_OF_INSIGHT {
            let detail =
                format!("Ensure this field has no more than {MAX_TILES_OF_INSIGHT} elements.");
            return Err(Error::invalid("max_length", detail));
        }
        ids.iter().map(|id| read_id(id).map(DashboardId)).collect()
    }

    fn schema() -> Schema {
        let most = Some(MAX_TILES_OF_INSIGHT);
        ArrayBuilder::new().items(RefOr::T(Identifier::schema())).max_items(most).into()
    }
}

/// Reads one ID. As in PostHog, the errors do not say which element is invalid.
fn read_id(value: &Value) -> Result<u64> {
    if value.is_null() {
        return Err(Error::invalid("null", "This field may not be null."));
    }
    let id = Identifier::read(value).map_err(|_| {
        let name = python_type(value);
        let detail = format!("Incorrect type. Expected pk value, received {name}.");
        Error::invalid("incorrect_type", detail)
    })?;
    if id == u64::MAX {
        // The number is negative or too large. The error names it as it was sent.
        let sent = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
        return Err(no_dashboard(&sent));
    }
    Ok(id)
}

/// The error for a dashboard that does not exist.
pub(super) fn no_dashboard(id: &impl Display) -> Error {
    Error::invalid("does_not_exist", format!("Invalid pk \"{id}\" - object does not exist."))
}

input! {
    /// The fields of an insight that can be set. Every field is optional.
    pub struct InsightFields {
        /// Display name.
        name: Nullable<Text<400>> => insight,
        /// A name that the client derived from the query. Kept as sent.
        derived_name: Nullable<Text<400>> => insight,
        /// The query in the legacy format. Ignored if the insight has a `query`.
        filters: FreeObject => insight,
        /// The query. Any object is stored and returned as sent; it is never run.
        query: Nullable<Query> => insight,
        /// A number to sort by. Kept as sent.
        order: Nullable<Integer<-2_147_483_648, 2_147_483_647>> => insight,
        /// True deletes the insight; false restores it. Ignored on create.
        deleted: Flag => _,
        /// All dashboards that show the insight. Replaces the set.
        dashboards: DashboardSet => _,
        /// Description in plain text.
        description: Nullable<Text<400>> => insight,
        /// Tags. Stored in lower case, sorted, without duplicates.
        tags: Tags => insight,
        /// Whether the insight is a favorite.
        favorited: Flag => insight,
        /// Whether the insight was saved on its own. A request without the field sets it to true.
        saved: Flag => _,
    }
    fn apply_to(insight: &mut Fields);
}

/// Parses the body of a request. The stored description of a template may be longer than one that a request sets.
pub fn parse(body: &JsonObject) -> ParsedWithKept<InsightFields> {
    ParsedWithKept::new(body, "description")
}

/// Applies the request's fields to an insight, except `deleted` and `dashboards`. An insight with a query has no legacy
/// filters.
pub(super) fn apply(sent: InsightFields, insight: &mut Fields) {
    insight.saved = sent.saved.unwrap_or(true);
    sent.apply_to(insight);
    if insight.query.is_some() {
        insight.filters.clear();
    }
}

output! {
    /// An insight with the look of its tile on the dashboard `from_dashboard`.
    pub struct InsightOnDashboard<'a> {
        /// The insight.
        ..insight: InsightBody<'a>,
        /// The color of the tile.
        color: Option<String>,
        /// The layouts of the tile.
        layouts: Map<String, Value>,
    }
}

output! {
    /// An insight in a basic list.
    pub struct BasicInsight<'a> {
        /// The stored fields.
        ..own: JsonText<'a, BasicFields<'a>> as BasicFields,
        last_refresh: Option<Timestamp> = null,
        refreshing: Option<bool> = null,
        last_viewed_at: Option<Timestamp> = null,
        /// The dashboards that show the insight and that the caller may see.
        #[schema(max_items = 1000)]
        dashboards: DashboardIds<'a> as Vec<DashboardId>,
        /// The tiles that show the insight on these dashboards.
        #[schema(max_items = 1000)]
        dashboard_tiles: &'a [ListedTile] as Vec<ListedTile>,
        /// The user who created the insight.
        created_by: EmbeddedUser as Option<users::Fields>,
        /// The access level that access rules give the caller.
        user_access_level: AccessLevel,
        /// When the insight was deleted. Only in lists of deleted insights.
        deleted_at?: Timestamp,
        /// The user who deleted the insight. Only in lists of deleted insights.
        deleted_by?: EmbeddedUser as users::Fields,
    }
}

/// An insight in full or in basic form.
pub type ListedInsight<'a> = Either<InsightBody<'a>, BasicInsight<'a>>;
/// An insight in any form.
pub type AnyInsight<'a> = Either<ListedInsight<'a>, InsightOnDashboard<'a>>;

/// The stored fields that the basic form shows.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = BasicInsightFixed)]
pub struct BasicFields<'a> {
    /// Numeric ID.
    id: InsightId,
    /// ID in links.
    #[serde(borrow)]
    short_id: Cow<'a, str>,
    /// Display name.
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    /// A name that a client derived from the query.
    #[serde(borrow)]
    derived_name: Option<Cow<'a, str>>,
    /// The query in the legacy format; empty if `query` is set.
    filters: Map<String, Value>,
    /// The query.
    query: Option<Map<String, Value>>,
    /// Description in plain text.
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    /// Whether the insight was saved on its own.
    saved: bool,
    /// Tags in lower case, sorted.
    tags: Vec<String>,
    /// When any field last changed.
    updated_at: Timestamp,
    /// When the insight was created.
    created_at: Timestamp,
    /// When a request to the insight itself last changed it.
    last_modified_at: Timestamp,
    /// Whether the insight is a favorite.
    favorited: bool,
}

/// What a response with one insight shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseOptions {
    /// Whether the request deleted the insight, which the response then still shows.
    pub show_deleted: bool,
    /// Whether to show the basic form.
    pub basic: bool,
    /// The dashboard whose tile's color and layouts to show.
    pub from_dashboard: Option<DashboardId>,
}

/// Renders one insight.
///
/// # Errors
/// 404 if the insight does not exist or is deleted; 403 if the caller may not view it.
pub fn body(
    tx: &dyn Raw,
    tenant: &InProject,
    id: InsightId,
    options: ResponseOptions,
) -> Result<Versioned> {
    let mut json = Vec::with_capacity(ITEM_SIZE);
    let version = tx.view::<Insight, _>(&(tenant.project.id, id), |row| {
        if row.meta.deleted && !options.show_deleted {
            return Err(Error::not_found());
        }
        let ruled = rules::level_on(tx, tenant, Object::Insight(id))?;
        let level = levels::on_object(&tenant.member, row.meta.created_by, ruled);
        level.require(AccessLevel::Viewer)?;
        let mut dashboards = VisibleDashboards::of(tx, tenant)?;
        let most = MAX_TILES_OF_INSIGHT;
        let view = InsightView::of(tx, &row.meta, ruled, &mut dashboards, most)?;
        write_one(tx, &row, &view, options, &mut json)?;
        Ok(row.version)
    })?;
    Ok(Versioned::new(version.ok_or_else(Error::not_found)?, json))
}

fn write_one(
    tx: &dyn Raw,
    row: &Row<'_, Insight>,
    view: &InsightView,
    options: ResponseOptions,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut users = EmbeddedUsers::default();
    if options.basic {
        return basic(tx, row, &basic_fields(row)?, view, &mut users)?.write_json(out);
    }
    let tile = view.tiles.iter().find(|tile| Some(tile.dashboard_id) == options.from_dashboard);
    let key = tile.map(|tile| (row.meta.project, tile.dashboard_id, tile.id));
    let style = key.map_or(Ok(None), |key| tx.find::<Tile>(&key))?;
    let insight = insights::body(tx, row, &view.tiles, view.rights, &mut users)?;
    match style.map(|tile| tile.fields) {
        Some(tiles::Fields { color, layouts, .. }) => {
            InsightOnDashboard { insight, color, layouts }.write_json(out)
        }
        None => insight.write_json(out),
    }
}

/// Returns the stored fields of the basic form as JSON.
fn basic_fields(row: &Row<'_, Insight>) -> Result<Vec<u8>> {
    let fields: BasicFields<'_> = parse_fields(row)?;
    serde_json::to_vec(&fields).map_err(Error::internal)
}

fn basic<'a>(
    tx: &dyn Raw,
    row: &Row<'_, Insight>,
    own: &'a [u8],
    view: &'a InsightView,
    users: &mut EmbeddedUsers,
) -> Result<BasicInsight<'a>> {
    Ok(BasicInsight {
        own: JsonText::new(own),
        dashboards: DashboardIds(&view.tiles),
        dashboard_tiles: &view.tiles,
        created_by: users.find(tx, row.meta.created_by)?,
        user_access_level: view.rights.user_access_level,
        deleted_at: None,
        deleted_by: None,
    })
}

/// Approximate size of a list item, in bytes.
const ITEM_SIZE: usize = 1500;

/// Writes the items of a list.
pub(super) struct InsightItems {
    pub(super) items: JsonItems,
    basic: bool,
    users: EmbeddedUsers,
}

impl InsightItems {
    pub(super) fn new(basic: bool, expected: usize) -> Self {
        let items = JsonItems::with_capacity(expected.min(100) * ITEM_SIZE);
        Self { items, basic, users: EmbeddedUsers::default() }
    }

    /// Appends an insight. For a deleted one, `removal` says when and by whom it was deleted.
    pub(super) fn push(
        &mut self,
        tx: &dyn Raw,
        row: &Row<'_, Insight>,
        view: &InsightView,
        removal: Option<&Deletion>,
    ) -> Result<()> {
        let Self { items, basic: is_basic, users } = self;
        let deleted_at = removal.map(|removal| removal.removed_at);
        let deleted_by = removal.map(|removal| users.find(tx, Some(removal.removed_by)));
        let deleted_by = deleted_by.transpose()?;
        if *is_basic {
            let own = basic_fields(row)?;
            let mut item = basic(tx, row, &own, view, users)?;
            (item.deleted_at, item.deleted_by) = (deleted_at, deleted_by);
            return items.push(item);
        }
        let mut item = insights::body(tx, row, &view.tiles, view.rights, users)?;
        (item.deleted_at, item.deleted_by) = (deleted_at, deleted_by);
        items.push(item)
    }
}
