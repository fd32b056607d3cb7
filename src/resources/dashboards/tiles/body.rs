//! JSON of tiles, each with its insight or text. See `docs/spec/tiles.md`.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::{DashboardId, ProjectId};
use crate::json::{Array, Object};
use crate::resources::access_controls::levels::DashboardRights;
use crate::resources::dashboards::insights::{self, Insight};
use crate::resources::dashboards::texts::{self, Text};
use crate::resources::dashboards::visible::VisibleDashboards;
use crate::resources::users::EmbeddedUserWriter;
use crate::store::{Order, Tx, Window};
use crate::time::Timestamp;

use super::visible_tiles::visible_tiles;
use super::{Content, Fields, Meta, Tile};

/// A tile of a dashboard. Either `insight` or `text` is set, and the other is null.
#[derive(ToSchema)]
#[schema(as = Tile)]
pub struct TileBody {
    /// The stored fields.
    #[serde(flatten)]
    pub own: Fields,
    /// Always null: queries are not run.
    pub last_refresh: Option<Timestamp>,
    /// Always false.
    pub is_cached: bool,
    /// Always empty.
    pub filters_overrides: Map<String, Value>,
    /// The insight on the tile; null on a text tile.
    pub insight: Option<insights::InsightBody>,
    /// The text on the tile; null on an insight tile.
    pub text: Option<texts::TextBody>,
    /// Position of the tile in the list, from 0.
    pub order: u64,
}

/// The fields that are the same for every tile, as JSON.
const FIXED_FIELDS: &[u8] = br#"{"last_refresh":null,"is_cached":false,"filters_overrides":{}}"#;

/// Appends the live tiles of a dashboard as a JSON array, ordered by position. Leaves out tiles whose
/// insight is deleted.
///
/// `rights` are the caller's rights on the dashboard; `visible` knows which other dashboards the caller may
/// see.
pub(in crate::resources::dashboards) fn write(
    tx: &impl Tx,
    dashboard: &(ProjectId, DashboardId),
    rights: &DashboardRights,
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
    let (users, text) = (EmbeddedUserWriter::default(), Vec::new());
    let mut contents = ContentReader { tx, rights, visible, users, text };
    let mut array = Array::begin(out);
    let mut order = 0_u64;
    for (meta, fields) in &live {
        let Some((insight, text)) = contents.of(meta)? else { continue };
        array.item(|out| {
            Object::begin(out)
                .splice(fields)
                .splice(FIXED_FIELDS)
                .raw("insight", insight)
                .raw("text", text)
                .field("order", &order)?
                .end();
            Ok(())
        })?;
        order += 1;
    }
    array.end();
    Ok(())
}

/// Renders the contents of tiles, one at a time.
struct ContentReader<'c, 'p, X> {
    tx: &'c X,
    rights: &'c DashboardRights,
    visible: &'c mut VisibleDashboards<'p>,
    users: EmbeddedUserWriter,
    text: Vec<u8>,
}

impl<X: Tx> ContentReader<'_, '_, X> {
    /// Returns the JSON of the tile's insight and of its text, one of which is null; `None` if the insight
    /// is deleted.
    fn of(&mut self, tile: &Meta) -> Result<Option<(&[u8], &[u8])>> {
        const NULL: &[u8] = b"null";
        let Self { tx, rights, visible, users, text: out } = self;
        out.clear();
        match tile.content {
            Content::Insight(id) => {
                tx.view::<Insight, _>(&(tile.project, id), |row| {
                    if row.meta.deleted {
                        return Ok(());
                    }
                    let insight = (tile.project, id);
                    let live = visible_tiles(*tx, insight, tile.dashboard, visible)?;
                    insights::write(*tx, &row, &live, rights, users, out)
                })?;
                Ok((!out.is_empty()).then_some((out, NULL)))
            }
            Content::Text(id) => {
                tx.view::<Text, _>(&(tile.project, id), |row| texts::write(*tx, &row, users, out))?;
                Ok((!out.is_empty()).then_some((NULL, out)))
            }
        }
    }
}
