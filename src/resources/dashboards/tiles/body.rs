//! How a dashboard's tiles are shown: each with the insight or the text on it (facts-dashboards §7).

use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::access::levels::Rights;
use crate::error::Result;
use crate::ids::{DashboardId, ProjectId};
use crate::json::{Array, Object};
use crate::resources::dashboards::insights::{self, Insight};
use crate::resources::dashboards::texts::{self, Text};
use crate::resources::dashboards::visible::VisibleDashboards;
use crate::resources::users::Embedder;
use crate::store::{Order, Tx, Window};
use crate::time::Timestamp;

use super::{Content, Head, Shown, Tile};

/// A tile of a dashboard, with an insight or a text on it.
#[derive(ToSchema)]
#[schema(as = Tile)]
pub struct TileBody {
    /// Its own fields.
    #[serde(flatten)]
    pub own: Shown,
    /// Null: nothing is computed here.
    pub last_refresh: Option<Timestamp>,
    /// False.
    pub is_cached: bool,
    /// Empty.
    pub filters_overrides: Map<String, Value>,
    /// The insight on it; null where a text is.
    pub insight: Option<insights::InsightBody>,
    /// The text on it; null where an insight is.
    pub text: Option<texts::TextBody>,
    /// Its place in the order, from 0.
    pub order: u64,
}

/// Members that say the same of every tile.
const CONSTANT: &[u8] = br#"{"last_refresh":null,"is_cached":false,"filters_overrides":{}}"#;

/// Appends the live tiles of a dashboard to a caller who has `rights` on it and sees the `visible` ones, in their
/// order and numbered by it. Those whose insight is removed are left out.
pub(in crate::resources::dashboards) fn write(
    tx: &impl Tx,
    dashboard: &(ProjectId, DashboardId),
    rights: &Rights,
    visible: &mut VisibleDashboards<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut live: Vec<(Head, Vec<u8>)> = Vec::new();
    tx.scan::<Tile, _>(dashboard, Window::all(Order::Ascending), |row| {
        if !row.head.deleted {
            live.push((row.head, row.shown.to_vec()));
        }
        Ok(())
    })?;
    live.sort_by(|(one, _), (other, _)| one.standing(other));
    let (users, text) = (Embedder::default(), Vec::new());
    let mut contents = Contents { tx, rights, visible, users, text };
    let mut array = Array::begin(out);
    let mut order = 0_u64;
    for (head, shown) in &live {
        let Some((insight, text)) = contents.of(head)? else { continue };
        array.item(|out| {
            Object::begin(out)
                .splice(shown)
                .splice(CONSTANT)
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

/// What tiles show, read one after the other.
struct Contents<'c, 'p, X> {
    tx: &'c X,
    rights: &'c Rights,
    visible: &'c mut VisibleDashboards<'p>,
    users: Embedder,
    text: Vec<u8>,
}

impl<X: Tx> Contents<'_, '_, X> {
    /// The tile's insight and text, one of them null; none where the insight is removed.
    fn of(&mut self, tile: &Head) -> Result<Option<(&[u8], &[u8])>> {
        const NULL: &[u8] = b"null";
        let Self { tx, rights, visible, users, text: out } = self;
        out.clear();
        match tile.content {
            Content::Insight(id) => {
                tx.view::<Insight, _>(&(tile.project, id), |row| {
                    if row.head.deleted {
                        return Ok(());
                    }
                    insights::write(*tx, &row, tile.dashboard, rights, visible, users, out)
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
