//! Tiles: what stands on a dashboard, an insight or a text each (facts-dashboards §7).
//!
//! The tiles of one dashboard are one range of one table. A dashboard has each insight and each text once,
//! soft-deleted tiles included.

pub(super) mod body;
mod change;
mod copies;
mod input;
mod moves;
mod weight;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, InsightId, OrganizationId, ProjectId, TextId, TileId};
use crate::secret::Draw;
use crate::store::{
    Count, Index, Indexed, Key, Order, Owner, Record, Reference, Sum, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

use super::Dashboard;
use super::insights::{self, Insight, NewInsight};
use super::texts::{self, Text};

pub(super) use change::{change, remove_all, restore_all};
pub(super) use copies::{copy_all, duplicate};
pub use input::{Layouts, TilePatch, TileRef, Tiles};
pub use moves::{TileMove, move_tile};
use weight::WEIGHT;
pub use weight::large_answer;
pub(super) use weight::resize_text;

/// How many tiles a dashboard has at the most, soft-deleted ones included (decisions §1).
pub const MOST: usize = 1_000;

/// A tile.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// What rules and orders decide by.
    pub head: Head,
    /// Its own fields.
    pub shown: Shown,
}

/// What rules and orders decide by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The organization of its project.
    pub organization: OrganizationId,
    /// The project of its dashboard.
    pub project: ProjectId,
    /// The dashboard it stands on.
    pub dashboard: DashboardId,
    /// Its number.
    pub id: TileId,
    /// What it shows.
    pub content: Content,
    /// Whether it is soft-deleted.
    pub deleted: bool,
    /// Where it stands: `layouts.sm.y`, then `layouts.sm.x`.
    pub position: (f64, f64),
}

impl Head {
    /// How it stands to another tile of the dashboard: by position, then by number (facts-dashboards §7).
    pub fn standing(&self, other: &Self) -> Ordering {
        let ((y, x), (other_y, other_x)) = (self.position, other.position);
        y.total_cmp(&other_y).then(x.total_cmp(&other_x)).then(self.id.cmp(&other.id))
    }
}

/// What a tile shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// An insight.
    Insight(InsightId),
    /// A text.
    Text(TextId),
}

/// The tile's own fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TileFixed)]
pub struct Shown {
    /// Its number.
    pub id: TileId,
    /// Its place for each width of the screen: `{"sm": {"x", "y", "w", "h"}}`.
    pub layouts: Map<String, Value>,
    /// Its colour; free.
    pub color: Option<String>,
}

/// The live tiles that show an insight.
pub const BY_INSIGHT: Index<Tile, (ProjectId, InsightId)> =
    Index::many(Table::TilesByInsight, |tile| match tile.head.content {
        Content::Insight(insight) if !tile.head.deleted => Some((tile.head.project, insight)),
        _ => None,
    });
/// The tiles that show a text; the removed ones too, for they may come back.
pub const BY_TEXT: Index<Tile, (ProjectId, TextId)> =
    Index::many(Table::TilesByText, |tile| match tile.head.content {
        Content::Text(text) => Some((tile.head.project, text)),
        Content::Insight(_) => None,
    });

impl Record for Tile {
    const TABLE: Table = Table::Tiles;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_INSIGHT, &BY_TEXT];
    const COUNTS: &'static [Count<Self>] =
        &[Count::per(|tile| Some((tile.head.project, tile.head.dashboard).encoded()))];
    const SUMS: &'static [&'static Sum<Self>] = &[&WEIGHT];
    type Key = (ProjectId, DashboardId, TileId);
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> Self::Key {
        (self.head.project, self.head.dashboard, self.head.id)
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.head.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        let Head { project, dashboard, content, .. } = self.head;
        let content = match content {
            Content::Insight(insight) => Reference::to::<Insight>(&(project, insight)),
            Content::Text(text) => Reference::to::<Text>(&(project, text)),
        };
        vec![Reference::to::<Dashboard>(&(project, dashboard)), content]
    }
}

/// How a tile looks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Look {
    /// Its place for each width of the screen.
    pub layouts: Map<String, Value>,
    /// Its colour, at most 400 characters.
    pub color: Option<String>,
}

/// Where these layouts put a tile: what is missing counts as 100 (facts-dashboards §7).
fn position(layouts: &Map<String, Value>) -> (f64, f64) {
    let sm = layouts.get("sm");
    let of = |name| sm.and_then(|sm| sm.get(name)).and_then(Value::as_f64).unwrap_or(100.0);
    (of("y"), of("x"))
}

/// Puts a new insight of the caller's on a dashboard.
///
/// # Errors
/// 400 `max_length` for a dashboard that is full.
pub fn add_insight(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    new: NewInsight,
    look: Look,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<TileId> {
    let insight = insights::create(tx, place, new, draw, now)?;
    add(tx, place, dashboard, Content::Insight(insight), look)
}

/// Puts a new text of the caller's on a dashboard. `body` has at most 4,000 characters.
///
/// # Errors
/// 400 `max_length` for a dashboard that is full.
pub fn add_text(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    body: Option<String>,
    look: Look,
    now: Timestamp,
) -> Result<TileId> {
    let text = texts::create(tx, place, body, now)?;
    add(tx, place, dashboard, Content::Text(text), look)
}

/// Puts what a tile shows on a dashboard that does not show it yet.
fn add(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    content: Content,
    look: Look,
) -> Result<TileId> {
    let project = place.project.id;
    require_room(tx, project, dashboard)?;
    let id = TileId(tx.next_number(Table::Tiles)?);
    let Look { layouts, color } = look;
    tx.put(&Tile {
        head: Head {
            organization: place.project.organization,
            project,
            dashboard,
            id,
            content,
            deleted: false,
            position: position(&layouts),
        },
        shown: Shown { id, layouts, color },
    })?;
    Ok(id)
}

fn require_room(tx: &impl Tx, project: ProjectId, dashboard: DashboardId) -> Result<()> {
    if tx.count::<Tile>(&(project, dashboard))? < MOST as u64 {
        return Ok(());
    }
    let detail = format!("Ensure this field has no more than {MOST} elements.");
    Err(Error::field("tiles", "max_length", detail))
}

/// The keys of the tiles of a dashboard that `keep` lets through, by number. A caller reads one tile at a time: the
/// layouts of all, parsed, take a hundred times the memory of their text.
fn keys_of(
    tx: &impl Tx,
    dashboard: (ProjectId, DashboardId),
    mut keep: impl FnMut(&Head) -> bool,
) -> Result<Vec<<Tile as Record>::Key>> {
    let mut keys = Vec::new();
    tx.scan::<Tile, _>(&dashboard, Window::all(Order::Ascending), |row| {
        if keep(&row.head) {
            keys.push((row.head.project, row.head.dashboard, row.head.id));
        }
        Ok(())
    })?;
    Ok(keys)
}
