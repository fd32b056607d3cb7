//! JSON of tiles, each with its insight or text, and of the deleted tiles, which a PATCH can restore; and the tiles of one
//! insight. See `docs/spec/tiles.md` and `docs/spec/insights.md`.

use crate::auth::InProject;
use crate::resources::access_controls::levels::{AccessLevel, ObjectRights};
use crate::resources::access_controls::shared::{CallerLevels, Shared};
use crate::resources::dashboards::insights::{
    self, Insight, InsightNames, ListedTile, TileInsight,
};
use crate::resources::dashboards::texts::{self, Text, TextBody};
use crate::resources::dashboards::{Dashboard, VisibleDashboards};
use crate::resources::shared::prelude::*;
use crate::resources::users::EmbeddedUsers;

use super::weight::require_bounded;
use super::{
    BY_INSIGHT, Content, Fields, MAX_TILES_OF_INSIGHT, Meta, Tile, add, keys_of,
    require_insight_room,
};

output! {
    /// A tile of a dashboard. Either `insight` or `text` is set, and the other is null.
    pub(in crate::resources::dashboards) struct TileBody<'a> as Tile {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// Always null: queries are not run.
        last_refresh: Option<Timestamp> = null,
        /// Always false.
        is_cached: bool = false,
        /// The insight on the tile; null on a text tile.
        insight: JsonText<'a, Option<TileInsight<'a>>> as Option<TileInsight>,
        /// The text on the tile; null on an insight tile.
        text: JsonText<'a, Option<TextBody<'a>>> as Option<TextBody>,
        /// Position of the tile in the list, from 0.
        order: u64,
    }
}

/// Appends the live tiles of a dashboard as a JSON array, ordered by position. Leaves out tiles whose
/// insight is deleted.
///
/// `rights` are the caller's rights on the dashboard; `visible` knows which other dashboards the caller may
/// see.
pub(in crate::resources::dashboards) fn write(
    tx: &dyn Raw,
    dashboard: &(ProjectId, DashboardId),
    rights: &ObjectRights,
    visible: &mut VisibleDashboards<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut live: Vec<(Meta, Vec<u8>)> = Vec::new();
    tx.scan::<Tile, _>(dashboard, Window::all(Order::Ascending), |row| {
        if !row.meta.deleted {
            live.push((row.meta, row.fields.to_vec()));
        }
        Ok(())
    })?;
    live.sort_by(|(one, _), (other, _)| one.compare_position(other));
    let (users, text) = (EmbeddedUsers::default(), Vec::new());
    let levels = CallerLevels::<Insight>::of(tx, visible.tenant)?;
    let mut contents = ContentReader { tx, rights, visible, levels, users, text };
    let mut order = 0_u64;
    Array::write(out, |array| {
        for (meta, fields) in &live {
            let Some((insight, text)) = contents.of(meta)? else { continue };
            array.push(TileBody { own: JsonText::new(fields), insight, text, order })?;
            order += 1;
        }
        Ok(())
    })
}

/// Renders the contents of tiles, one at a time.
struct ContentReader<'c, 'p> {
    tx: &'c dyn Raw,
    rights: &'c ObjectRights,
    visible: &'c mut VisibleDashboards<'p>,
    levels: CallerLevels<'p, Insight>,
    users: EmbeddedUsers,
    text: Vec<u8>,
}

impl ContentReader<'_, '_> {
    /// Returns the JSON of the tile's insight and of its text, one of which is null; `None` if the insight
    /// is deleted.
    fn of(&mut self, tile: &Meta) -> Result<Option<Contents<'_>>> {
        let Self { tx, rights, visible, levels, users, text: out } = self;
        out.clear();
        match tile.content {
            Content::Insight(id) => {
                tx.view::<Insight, _>(&(tile.project, id), |row| {
                    if row.meta.deleted {
                        return Ok(());
                    }
                    let user_access_level = levels.level(&row.meta);
                    if !user_access_level.can_view() {
                        return insights::write_hidden(&row, out);
                    }
                    let live = visible_tiles(*tx, (tile.project, id), tile, visible)?;
                    let rights = ObjectRights { user_access_level, ..**rights };
                    insights::body(*tx, &row, &live, rights, users)?.write_json(out)
                })?;
                Ok((!out.is_empty()).then_some((JsonText::new(out), JsonText::NULL)))
            }
            Content::Text(id) => {
                tx.view::<Text, _>(&(tile.project, id), |row| {
                    texts::body(*tx, &row, users)?.write_json(out)
                })?;
                Ok((!out.is_empty()).then_some((JsonText::NULL, JsonText::new(out))))
            }
        }
    }
}

/// The JSON of a tile's insight and of its text.
type Contents<'a> = (JsonText<'a, Option<TileInsight<'a>>>, JsonText<'a, Option<TextBody<'a>>>);

output! {
    /// A deleted tile of a dashboard. Either `insight` or `text` is set, and the other is null.
    pub struct DeletedTileBody<'a> as DeletedTile {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// The insight on the tile; null on a text tile.
        insight: Option<DeletedTileInsight>,
        /// The text on the tile; null on an insight tile.
        text: JsonText<'a, Option<TextBody<'a>>> as Option<TextBody>,
    }
}

/// The insight on a deleted tile. Its names are null if the caller may not view the insight.
#[derive(Serialize, ToSchema)]
pub struct DeletedTileInsight {
    /// Numeric ID.
    id: InsightId,
    /// ID in links.
    short_id: String,
    /// Display name.
    name: Option<String>,
    /// A name that a client derived from the query.
    derived_name: Option<String>,
    /// The access level that access rules give the caller.
    user_access_level: AccessLevel,
}

/// Lists the deleted tiles of a dashboard, the newest tile first. Returns the total, and those in `window` as the items
/// of a JSON array.
///
/// # Errors
/// 404 if the dashboard does not exist or is deleted; 403 if the caller may not edit it.
pub fn list_deleted(
    tx: &dyn Raw,
    tenant: &InProject,
    dashboard: DashboardId,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let project = tenant.project.id;
    Dashboard::get_live(tx, project, &dashboard)?.rights(tx, tenant)?.require_edit()?;
    let deleted = keys_of(tx, (project, dashboard), |tile| tile.deleted)?;
    let levels = CallerLevels::<Insight>::of(tx, tenant)?;
    let (mut items, mut users) = (JsonItems::default(), EmbeddedUsers::default());
    for key in deleted.iter().rev().skip(window.offset).take(window.limit) {
        tx.view::<Tile, _>(key, |row| {
            let (mut insight, mut text) = (None, Vec::new());
            match row.meta.content {
                Content::Insight(id) => insight = names(tx, &levels, (project, id))?,
                Content::Text(id) => {
                    tx.view::<Text, _>(&(project, id), |row| {
                        texts::body(tx, &row, &mut users)?.write_json(&mut text)
                    })?;
                }
            }
            let text = if text.is_empty() { JsonText::NULL } else { JsonText::new(&text) };
            items.push(DeletedTileBody { own: row.json(), insight, text })
        })?;
    }
    Ok((deleted.len() as u64, items.into_bytes()))
}

fn names(
    tx: &dyn Raw,
    levels: &CallerLevels<'_, Insight>,
    key: (ProjectId, InsightId),
) -> Result<Option<DeletedTileInsight>> {
    tx.view::<Insight, _>(&key, |row| {
        let InsightNames { short_id, name, derived_name } = parse_fields(&row)?;
        let user_access_level = levels.level(&row.meta);
        let shown = |name: Option<String>| name.filter(|_| user_access_level.can_view());
        Ok(DeletedTileInsight {
            id: row.meta.id,
            short_id,
            name: shown(name),
            derived_name: shown(derived_name),
            user_access_level,
        })
    })
}

/// Maximum number of tiles and dashboards that an insight lists on a tile and in a list of insights.
pub const MAX_LISTED: usize = 100;

/// The key of a tile.
type TileKey = (ProjectId, DashboardId, TileId);

/// Returns the live tiles that show an insight, ordered by dashboard.
pub fn live_tiles(tx: &dyn Raw, insight: (ProjectId, InsightId)) -> Result<Vec<TileKey>> {
    tx.keys(&BY_INSIGHT, &(insight, false), MAX_TILES_OF_INSIGHT)
}

/// Returns what the JSON of an insight shows of a tile.
///
/// # Errors
/// 500 if the tile does not exist.
pub fn listed(tx: &dyn Raw, key: TileKey) -> Result<ListedTile> {
    let tile = tx.meta::<Tile>(&key)?;
    tile.map(|tile| tile.listed()).ok_or_else(|| Error::internal("an index names no tile"))
}

/// Requires that the caller may view every insight that a dashboard shows.
///
/// # Errors
/// 403 otherwise.
pub fn require_view_of_all(tx: &dyn Raw, tenant: &InProject, dashboard: DashboardId) -> Result<()> {
    let levels = CallerLevels::<Insight>::of(tx, tenant)?;
    let mut lowest = AccessLevel::Manager;
    let project = tenant.project.id;
    let live = |tile: Meta| tile.content.insight().filter(|_| !tile.deleted);
    for insight in collect::<Tile, _, Vec<_>>(tx, &(project, dashboard), live)? {
        if let Some(insight) = tx.meta::<Insight>(&(project, insight))? {
            lowest = lowest.min(levels.level(&insight));
        }
    }
    lowest.require(AccessLevel::Viewer)
}

/// Returns the first live tiles that show the same insight as `read` on dashboards that the caller may see. The tile
/// `read` is always among them.
fn visible_tiles(
    tx: &dyn Raw,
    insight: (ProjectId, InsightId),
    read: &Meta,
    visible: &mut VisibleDashboards<'_>,
) -> Result<Vec<ListedTile>> {
    let limit = if visible.all { MAX_LISTED } else { MAX_TILES_OF_INSIGHT };
    let mut shown = Vec::new();
    for tile in tx.keys(&BY_INSIGHT, &(insight, false), limit)? {
        if tile.1 == read.dashboard {
            shown.push(read.listed());
        } else if shown.len() < MAX_LISTED && visible.shows(tx, tile.1)? {
            shown.push(listed(tx, tile)?);
        }
    }
    if shown.iter().all(|tile| tile.dashboard_id != read.dashboard) {
        // Tiles are sorted by dashboard, so this tile comes after all that were read.
        shown.push(read.listed());
    }
    if shown.len() > MAX_LISTED {
        shown.remove(MAX_LISTED - 1);
    }
    Ok(shown)
}

/// The request field that names the dashboards of an insight.
const FIELD: &str = "dashboards";

/// Puts an insight on a dashboard that does not show it: restores its deleted tile there, or adds a tile.
///
/// # Errors
/// 400 `max_length` if the dashboard or the insight has too many tiles, or the dashboard is too heavy.
pub fn place(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    insight: InsightId,
) -> Result<()> {
    let project = tenant.project.id;
    let deleted = ((project, insight, true), (project, dashboard));
    if let Some(key) = tx.keys(&BY_INSIGHT, &deleted, 1)?.pop() {
        let mut tile: Tile = tx.get(&key)?;
        tile.restore();
        tx.put(&tile)?;
    } else {
        let full = |error: Error| error.with_attr_prefix(FIELD);
        require_insight_room(tx, project, insight).map_err(full)?;
        add(tx, tenant, dashboard, Content::Insight(insight), Fields::default())?;
    }
    require_bounded(tx, (project, dashboard), FIELD)?;
    tx.log_about::<Dashboard>(&(project, dashboard));
    tx.bump_version::<Dashboard>(&(project, dashboard))
}

/// Deletes a live tile softly.
///
/// # Errors
/// 404 if the tile does not exist.
pub fn withdraw(tx: &mut WriteTx<'_>, key: (ProjectId, DashboardId, TileId)) -> Result<()> {
    let mut tile: Tile = tx.get(&key)?;
    tile.meta.deleted = true;
    tx.put(&tile)?;
    tx.log_about::<Dashboard>(&(key.0, key.1));
    tx.bump_version::<Dashboard>(&(key.0, key.1))
}
