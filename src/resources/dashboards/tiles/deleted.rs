//! The deleted tiles of a dashboard, which a PATCH can restore. See `docs/spec/tiles.md`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, InsightId, ProjectId};
use crate::json::{JsonItems, JsonText, WriteJson, output};
use crate::resources::access_controls::caller_levels::CallerLevels;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::shared::Shared;
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::{self, Text, TextBody};
use crate::resources::users::EmbeddedUsers;
use crate::store::{Tx, Window};

use super::{Content, Fields, Tile, keys_of};

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

/// The stored fields of an insight that a deleted tile shows.
#[derive(Deserialize)]
struct Names {
    short_id: String,
    name: Option<String>,
    derived_name: Option<String>,
}

/// Lists the deleted tiles of a dashboard, the newest tile first. Returns the total, and those in `window` as the items
/// of a JSON array.
///
/// # Errors
/// 404 if the dashboard does not exist or is deleted; 403 if the caller may not edit it.
pub fn list_deleted(
    tx: &impl Tx,
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
    tx: &impl Tx,
    levels: &CallerLevels<'_, Insight>,
    key: (ProjectId, InsightId),
) -> Result<Option<DeletedTileInsight>> {
    tx.view::<Insight, _>(&key, |row| {
        let Names { short_id, name, derived_name } =
            serde_json::from_slice(row.fields).map_err(Error::internal)?;
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
