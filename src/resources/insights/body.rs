//! JSON of an insight, in full and in basic form.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{DashboardId, InsightId};
use crate::json::{Either, JsonText, WriteJson, output};
use crate::resources::access_controls::caller_levels::level_on;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::deletions::Deletion;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::insights::body::{
    self as full, DashboardIds, InsightBody, TileOf, TileRefs,
};
use crate::resources::dashboards::tiles::{self, MAX_TILES_OF_INSIGHT, Tile};
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};
use crate::store::{Row, Tx};
use crate::time::Timestamp;

use super::rights::InsightView;

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
        dashboard_tiles: TileRefs<'a> as Vec<TileOf>,
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
    tx: &impl Tx,
    tenant: &InProject,
    id: InsightId,
    options: ResponseOptions,
) -> Result<Versioned> {
    let mut json = Vec::with_capacity(ITEM_SIZE);
    let version = tx.view::<Insight, _>(&(tenant.project.id, id), |row| {
        if row.meta.deleted && !options.show_deleted {
            return Err(Error::not_found());
        }
        let level = level_on::<Insight>(tx, tenant, &row.meta)?;
        level.require(AccessLevel::Viewer)?;
        let mut dashboards = VisibleDashboards::of(tx, tenant)?;
        let most = MAX_TILES_OF_INSIGHT;
        let view = InsightView::of(tx, &row.meta, level, &mut dashboards, most)?;
        write_one(tx, &row, &view, options, &mut json)?;
        Ok(row.version)
    })?;
    Ok(Versioned::new(version.ok_or_else(Error::not_found)?, json))
}

fn write_one(
    tx: &impl Tx,
    row: &Row<'_, Insight>,
    view: &InsightView,
    options: ResponseOptions,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut users = EmbeddedUsers::default();
    if options.basic {
        return basic(tx, row, &basic_fields(row)?, view, &mut users)?.write_json(out);
    }
    let tile = view.tiles.iter().find(|tile| Some(tile.dashboard) == options.from_dashboard);
    let style = match tile {
        Some(tile) => tx.find::<Tile>(&(row.meta.project, tile.dashboard, tile.id))?,
        None => None,
    };
    let insight = full::body(tx, row, &view.tiles, view.rights, &mut users)?;
    match style.map(|tile| tile.fields) {
        Some(tiles::Fields { color, layouts, .. }) => {
            InsightOnDashboard { insight, color, layouts }.write_json(out)
        }
        None => insight.write_json(out),
    }
}

/// Returns the stored fields of the basic form as JSON.
fn basic_fields(row: &Row<'_, Insight>) -> Result<Vec<u8>> {
    let fields: BasicFields<'_> = serde_json::from_slice(row.fields).map_err(Error::internal)?;
    serde_json::to_vec(&fields).map_err(Error::internal)
}

fn basic<'a>(
    tx: &impl Tx,
    row: &Row<'_, Insight>,
    own: &'a [u8],
    view: &'a InsightView,
    users: &mut EmbeddedUsers,
) -> Result<BasicInsight<'a>> {
    Ok(BasicInsight {
        own: JsonText::new(own),
        dashboards: DashboardIds(&view.tiles),
        dashboard_tiles: TileRefs(&view.tiles),
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
    out: Vec<u8>,
    basic: bool,
    users: EmbeddedUsers,
}

impl InsightItems {
    pub(super) fn new(basic: bool, expected: usize) -> Self {
        let out = Vec::with_capacity(expected.min(100) * ITEM_SIZE);
        Self { out, basic, users: EmbeddedUsers::default() }
    }

    /// Appends an insight. For a deleted one, `removal` says when and by whom it was deleted.
    pub(super) fn push(
        &mut self,
        tx: &impl Tx,
        row: &Row<'_, Insight>,
        view: &InsightView,
        removal: Option<&Deletion>,
    ) -> Result<()> {
        let Self { out, basic: is_basic, users } = self;
        if !out.is_empty() {
            out.push(b',');
        }
        let deleted_at = removal.map(|removal| removal.removed_at);
        let deleted_by = removal.map(|removal| users.find(tx, Some(removal.removed_by)));
        let deleted_by = deleted_by.transpose()?;
        if *is_basic {
            let own = basic_fields(row)?;
            let item = basic(tx, row, &own, view, users)?;
            return BasicInsight { deleted_at, deleted_by, ..item }.write_json(out);
        }
        let item = full::body(tx, row, &view.tiles, view.rights, users)?;
        InsightBody { deleted_at, deleted_by, ..item }.write_json(out)
    }

    /// Returns the items of a JSON array.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }
}
