//! Changing the tiles of a dashboard (facts-dashboards §4; §7, Writing tiles).

use std::collections::{BTreeSet, HashMap};

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, TextId, TileId};
use crate::patch::{Patch, set};
use crate::resources::dashboards::{Dashboard, insights, texts};
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::input::{TextPatch, TilePatch};
use super::weight::bounding;
use super::{BY_INSIGHT, BY_TEXT, Content, Look, Tile, add_text, keys_of, position};

/// Does what was sent with one tile after the other; answers the dashboards that show something else for it:
/// this one, and those that show a text that was changed. A number leads to tiles of this dashboard alone,
/// and that of a text to those that one of its tiles shows.
///
/// # Errors
/// 400 for a tile or a text that is not there, or a dashboard that is full.
pub(in crate::resources::dashboards) fn change(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    sent: &[TilePatch],
    now: Timestamp,
) -> Result<BTreeSet<DashboardId>> {
    bounding(tx, (place.project.id, dashboard), |tx| change_each(tx, place, dashboard, sent, now))
}

fn change_each(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    sent: &[TilePatch],
    now: Timestamp,
) -> Result<BTreeSet<DashboardId>> {
    let known = known_texts(tx, place, dashboard, sent)?;
    let mut changed = BTreeSet::new();
    for (index, patch) in sent.iter().enumerate() {
        let at = At { place, dashboard, known: &known, index };
        if let Some(text) = &patch.text {
            changed.insert(dashboard);
            changed.extend(upsert_text(tx, &at, patch, text, now)?);
        } else if patch.says_something() {
            let id = patch.id.clone().value().ok_or_else(|| at.required_id())?;
            if put(tx, at.tile(tx, id)?, patch, now)? {
                changed.insert(dashboard);
            }
        }
    }
    Ok(changed)
}

/// Which tile of the dashboard shows which text, soft-deleted ones included: read once, and only where a
/// text is sent without its tile.
fn known_texts(
    tx: &impl Tx,
    place: &InProject,
    dashboard: DashboardId,
    sent: &[TilePatch],
) -> Result<HashMap<TextId, TileId>> {
    let mut known = HashMap::new();
    let is_sought = |tile: &TilePatch| {
        let text = tile.text.as_ref().and_then(|text| text.id.clone().value());
        text.is_some() && tile.id.clone().value().is_none()
    };
    if sent.iter().any(is_sought) {
        let all = Window::all(Order::Ascending);
        tx.scan::<Tile, _>(&(place.project.id, dashboard), all, |row| {
            if let Content::Text(text) = row.head.content {
                known.insert(text, row.head.id);
            }
            Ok(())
        })?;
    }
    Ok(known)
}

/// One element of what was sent.
struct At<'p> {
    place: &'p InProject,
    dashboard: DashboardId,
    known: &'p HashMap<TextId, TileId>,
    index: usize,
}

impl At<'_> {
    fn fault(&self, field: &str, code: &'static str, detail: String) -> Error {
        Error::field(format!("tiles__{}__{field}", self.index), code, detail)
    }

    fn required_id(&self) -> Error {
        self.fault("id", "required", "This field is required.".to_owned())
    }

    fn tile(&self, tx: &impl Tx, id: u64) -> Result<Tile> {
        let found = tx.find::<Tile>(&(self.place.project.id, self.dashboard, TileId(id)))?;
        found.ok_or_else(|| {
            let detail = format!("Invalid pk \"{id}\" - object does not exist.");
            self.fault("id", "does_not_exist", detail)
        })
    }

    /// The tile that an element with a text is about, and that text; none where both are new.
    fn text_tile(
        &self,
        tx: &impl Tx,
        tile: Option<u64>,
        text: Option<TextId>,
    ) -> Result<Option<(Tile, TextId)>> {
        let tile = match (tile, text) {
            (None, None) => return Ok(None),
            (Some(id), _) => self.tile(tx, id)?,
            (None, Some(text)) => {
                let id = self.known.get(&text).ok_or_else(no_such_text)?;
                self.tile(tx, id.0)?
            }
        };
        match tile.head.content {
            Content::Text(own) if text.is_none_or(|text| text == own) => Ok(Some((tile, own))),
            Content::Insight(_) if text.is_none() => {
                let detail = "A tile shows either an insight or a text.".to_owned();
                Err(self.fault("text", "invalid_input", detail))
            }
            _ => Err(no_such_text()),
        }
    }
}

fn no_such_text() -> Error {
    Error::field("text", "invalid_input", "Text tile not found.")
}

/// Changes the text of a tile, or puts a new one on the dashboard; answers which other dashboards show it.
fn upsert_text(
    tx: &mut WriteTx<'_>,
    at: &At<'_>,
    patch: &TilePatch,
    sent: &TextPatch,
    now: Timestamp,
) -> Result<Vec<DashboardId>> {
    let TextPatch { id, body } = sent.clone();
    let known = at.text_tile(tx, patch.id.clone().value(), id.map(TextId).value())?;
    let Some((mut tile, mut text)) = known else {
        let id = add_text(tx, at.place, at.dashboard, body.value(), Look::default(), now)?;
        put(tx, at.tile(tx, id.0)?, patch, now)?;
        return Ok(Vec::new());
    };
    let mut others = others_with(tx, at, text)?;
    if !may_edit_all(tx, at.place, &others)? {
        text = texts::copy(tx, at.place, text, now)?;
        tile.head.content = Content::Text(text);
        others.clear();
    }
    texts::edit(tx, at.place, text, body, now)?;
    put(tx, tile, patch, now)?;
    Ok(others)
}

/// How many other dashboards one change of a text reaches at the most.
const REACH: usize = 100;

/// The other dashboards with a tile that shows the text, live or removed; at most one more than a change
/// reaches.
fn others_with(tx: &impl Tx, at: &At<'_>, text: TextId) -> Result<Vec<DashboardId>> {
    let tiles = tx.keys(&BY_TEXT, &(at.place.project.id, text), REACH + 2)?;
    let others = tiles.into_iter().map(|(_, dashboard, _)| dashboard);
    Ok(others.filter(|other| *other != at.dashboard).collect())
}

/// Whether the caller may change what all these dashboards show. Where they may not, or it is too many, a
/// change makes the text this dashboard's own.
fn may_edit_all(tx: &impl Tx, place: &InProject, dashboards: &[DashboardId]) -> Result<bool> {
    if dashboards.len() > REACH {
        return Ok(false);
    }
    for dashboard in dashboards {
        let head = tx.head::<Dashboard>(&(place.project.id, *dashboard))?;
        let Some(head) = head else { continue };
        if head.rights(tx, place)?.require_edit().is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes what was sent of a tile itself; answers whether that changed it.
fn put(tx: &mut WriteTx<'_>, mut tile: Tile, patch: &TilePatch, now: Timestamp) -> Result<bool> {
    let before = tile.clone();
    let TilePatch { id: _, text: _, deleted, color, layouts } = patch.clone();
    color.apply(&mut tile.shown.color);
    set(&mut tile.shown.layouts, layouts);
    tile.head.position = position(&tile.shown.layouts);
    match deleted {
        Patch::Absent => {}
        Patch::Null => tile.head.deleted = false,
        Patch::Value(deleted) => tile.head.deleted = deleted,
    }
    if before.head.deleted && !tile.head.deleted {
        bring_content_back(tx, &tile, now)?;
    }
    tx.put(&tile)?;
    Ok(tile != before)
}

/// A tile that is live shows something: its insight is not removed.
fn bring_content_back(tx: &mut WriteTx<'_>, tile: &Tile, now: Timestamp) -> Result<()> {
    match tile.head.content {
        Content::Insight(insight) => {
            insights::set_deleted(tx, (tile.head.project, insight), false, now)
        }
        Content::Text(_) => Ok(()),
    }
}

/// Removes the tiles of a dashboard that is removed, and where `with_insights` holds, each insight that no
/// live tile shows any more.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(in crate::resources::dashboards) fn remove_all(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    with_insights: bool,
    now: Timestamp,
) -> Result<()> {
    for key in keys_of(tx, (place.project.id, dashboard), |tile| !tile.deleted)? {
        let mut tile: Tile = tx.get(&key)?;
        tile.head.deleted = true;
        tx.put(&tile)?;
        let Content::Insight(insight) = tile.head.content else { continue };
        let key = (place.project.id, insight);
        if with_insights && tx.keys(&BY_INSIGHT, &key, 1)?.is_empty() {
            insights::set_deleted(tx, key, true, now)?;
        }
    }
    Ok(())
}

/// Brings back every tile of a dashboard that is brought back, with its insight; those too that were
/// removed one by one before the dashboard was.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(in crate::resources::dashboards) fn restore_all(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    now: Timestamp,
) -> Result<()> {
    for key in keys_of(tx, (place.project.id, dashboard), |_| true)? {
        let mut tile: Tile = tx.get(&key)?;
        tile.head.deleted = false;
        tx.put(&tile)?;
        bring_content_back(tx, &tile, now)?;
    }
    Ok(())
}
