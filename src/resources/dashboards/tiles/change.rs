//! Updating the tiles of a dashboard. See `docs/spec/tiles.md`.

use std::collections::{BTreeMap, BTreeSet};

use crate::auth::InProject;
use crate::base::patch::Apply;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::shared::CallerLevels;
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::{self, Insight};
use crate::resources::dashboards::texts::{self, Text};
use crate::resources::shared::prelude::*;

use super::input::{TextPatch, TilePatch};
use super::weight::{bounding, resizing_text};
use super::{BY_INSIGHT, BY_TEXT, Content, Fields, Tile, add_text, keys_of};

/// What changes of tiles affected.
#[derive(Default)]
pub(in crate::resources::dashboards) struct TileChanges {
    /// The dashboards that show a change: that of the request, and those that show an updated text.
    pub(in crate::resources::dashboards) dashboards: BTreeSet<DashboardId>,
    /// The insights whose tiles were deleted or restored, and whether the last such change was a restoration.
    insights: BTreeMap<InsightId, bool>,
}

impl TileChanges {
    /// Restores the insights of restored tiles that the caller may edit, and increments the versions of all insights whose
    /// tiles changed.
    pub(in crate::resources::dashboards) fn note_insights(
        &self,
        tx: &mut WriteTx<'_>,
        tenant: &InProject,
        now: Timestamp,
    ) -> Result<()> {
        if self.insights.is_empty() {
            return Ok(());
        }
        let levels = CallerLevels::<Insight>::of(tx, tenant)?;
        for (insight, is_restored) in &self.insights {
            let key = (tenant.project.id, *insight);
            if *is_restored {
                restore_insight(tx, &levels, key, now)?;
            } else {
                tx.bump_version::<Insight>(&key)?;
            }
        }
        Ok(())
    }
}

/// Restores the insight of a restored tile, unless access rules forbid the caller to edit it. A tile of a deleted insight
/// is not shown.
fn restore_insight(
    tx: &mut WriteTx<'_>,
    levels: &CallerLevels<'_, Insight>,
    key: (ProjectId, InsightId),
    now: Timestamp,
) -> Result<()> {
    if may_edit(tx, levels, &key)? {
        return insights::restore_with_tile(tx, key, now);
    }
    tx.bump_version::<Insight>(&key)
}

fn may_edit(
    tx: &dyn Raw,
    levels: &CallerLevels<'_, Insight>,
    key: &(ProjectId, InsightId),
) -> Result<bool> {
    let insight = tx.meta::<Insight>(key)?;
    Ok(insight.is_some_and(|insight| levels.level(&insight).require(AccessLevel::Editor).is_ok()))
}

/// Applies the changes of tiles in the order of the request. Returns what they affected.
///
/// A tile ID must be of a tile of this dashboard, and a text ID of a text that such a tile shows.
///
/// # Errors
/// 400 if a tile or a text does not exist, or the dashboard is full.
pub(in crate::resources::dashboards) fn change(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    sent: &[TilePatch],
    now: Timestamp,
) -> Result<TileChanges> {
    bounding(tx, (tenant.project.id, dashboard), |tx| {
        let mut changes = TileChanges::default();
        for (index, patch) in sent.iter().enumerate() {
            let at = TileContext { tenant, dashboard, index };
            change_one(tx, &at, patch, &mut changes, now)?;
        }
        Ok(changes)
    })
}

fn change_one(
    tx: &mut WriteTx<'_>,
    at: &TileContext<'_>,
    patch: &TilePatch,
    changes: &mut TileChanges,
    now: Timestamp,
) -> Result<()> {
    if let Some(text) = &patch.text {
        return upsert_text(tx, at, patch, text, changes, now);
    }
    if !patch.says_something() {
        return Ok(());
    }
    let id = patch.id.clone().value().ok_or_else(|| missing(&at.attr("id")))?;
    match at.find(tx, id)? {
        Some(tile) => apply_patch(tx, tile, patch, changes),
        // Another user may have moved the tile away since the arrangement began.
        None if patch.only_arranges() => Ok(()),
        None => Err(at.no_such_tile(id)),
    }
}

/// One element of the request's `tiles`, and what is needed to find its tile.
struct TileContext<'p> {
    tenant: &'p InProject,
    dashboard: DashboardId,
    index: usize,
}

impl TileContext<'_> {
    fn attr(&self, field: &str) -> String {
        format!("tiles__{}__{field}", self.index)
    }

    fn no_such_tile(&self, id: u64) -> Error {
        does_not_exist(self.attr("id"), id)
    }

    fn find(&self, tx: &dyn Raw, id: u64) -> Result<Option<Tile>> {
        tx.find(&(self.tenant.project.id, self.dashboard, TileId(id)))
    }

    fn tile(&self, tx: &dyn Raw, id: u64) -> Result<Tile> {
        self.find(tx, id)?.ok_or_else(|| self.no_such_tile(id))
    }

    /// Returns the existing tile and text that an element changes; `None` if the element adds a text.
    fn text_tile(
        &self,
        tx: &dyn Raw,
        tile: Option<u64>,
        text: Option<TextId>,
    ) -> Result<Option<(Tile, TextId)>> {
        let tile = match (tile, text) {
            (None, None) => return Ok(None),
            (Some(id), _) => self.tile(tx, id)?,
            (None, Some(text)) => {
                let project = self.tenant.project.id;
                let shown = tx.keys(&BY_TEXT, &((project, text), (project, self.dashboard)), 1)?;
                tx.get::<Tile>(shown.first().ok_or_else(no_such_text)?)?
            }
        };
        match tile.meta.content {
            Content::Text(own) if text.is_none_or(|text| text == own) => Ok(Some((tile, own))),
            Content::Insight(_) if text.is_none() => {
                let detail = "A tile shows either an insight or a text.";
                Err(Error::field(self.attr("text"), "invalid_input", detail))
            }
            _ => Err(no_such_text()),
        }
    }
}

fn no_such_text() -> Error {
    Error::field("text", "invalid_input", "Text tile not found.")
}

/// Updates the text of a tile, or adds a tile with a new text.
fn upsert_text(
    tx: &mut WriteTx<'_>,
    context: &TileContext<'_>,
    patch: &TilePatch,
    sent: &TextPatch,
    changes: &mut TileChanges,
    now: Timestamp,
) -> Result<()> {
    let TextPatch { id, body } = sent.clone();
    let known = context.text_tile(tx, patch.id.clone().value(), id.map(TextId).value())?;
    let Some((mut tile, mut text)) = known else {
        changes.dashboards.insert(context.dashboard);
        let TileContext { tenant, dashboard, .. } = *context;
        let id = add_text(tx, tenant, dashboard, body.value(), Fields::default(), now)?;
        return apply_patch(tx, context.tile(tx, id.0)?, patch, changes);
    };
    let project = context.tenant.project.id;
    let before = tx.get::<Text>(&(project, text))?.fields.body;
    let mut after = before.clone();
    body.apply(&mut after);
    if after == before {
        return apply_patch(tx, tile, patch, changes);
    }
    changes.dashboards.insert(context.dashboard);
    // The tiles of this text, live or deleted: one on this dashboard, and one more than allowed on others.
    let tiles = tx.keys(&BY_TEXT, &(project, text), MAX_OTHER_DASHBOARDS + 2)?;
    let others = tiles.into_iter().map(|(_, dashboard, _)| dashboard);
    let mut others: Vec<_> = others.filter(|other| *other != context.dashboard).collect();
    if !may_edit_all(tx, context.tenant, &others)? {
        text = texts::copy(tx, context.tenant, text, now)?;
        tile.meta.content = Content::Text(text);
        others.clear();
    }
    resizing_text(tx, (project, text), |tx| texts::edit(tx, context.tenant, text, after, now))?;
    changes.dashboards.extend(others);
    apply_patch(tx, tile, patch, changes)
}

/// Maximum number of other dashboards that one change of a text can affect.
const MAX_OTHER_DASHBOARDS: usize = 100;

/// Returns whether the caller may edit all these dashboards. If not, or if there are too many, the change
/// goes to a copy of the text, which only this dashboard shows.
fn may_edit_all(tx: &dyn Raw, tenant: &InProject, dashboards: &[DashboardId]) -> Result<bool> {
    if dashboards.len() > MAX_OTHER_DASHBOARDS {
        return Ok(false);
    }
    for dashboard in dashboards {
        let meta = tx.meta::<Dashboard>(&(tenant.project.id, *dashboard))?;
        let Some(meta) = meta else { continue };
        if meta.rights(tx, tenant)?.require_edit().is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the changed fields of a tile.
fn apply_patch(
    tx: &mut WriteTx<'_>,
    mut tile: Tile,
    patch: &TilePatch,
    changes: &mut TileChanges,
) -> Result<()> {
    let before = tile.clone();
    patch.clone().apply_to(&mut tile.fields);
    match patch.deleted {
        Patch::Absent => {}
        Patch::Null | Patch::Value(false) => tile.restore(),
        Patch::Value(true) => tile.meta.deleted = true,
    }
    tx.put(&tile)?;
    if tile != before {
        changes.dashboards.insert(tile.meta.dashboard);
    }
    if let Content::Insight(insight) = tile.meta.content
        && before.meta.deleted != tile.meta.deleted
    {
        changes.insights.insert(insight, before.meta.deleted);
    }
    Ok(())
}

/// Deletes all tiles of a deleted dashboard. With `with_insights`, also deletes each insight that no live
/// tile shows any more and that access rules let the caller edit.
pub(in crate::resources::dashboards) fn delete_all(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    with_insights: bool,
    now: Timestamp,
) -> Result<()> {
    let levels = CallerLevels::<Insight>::of(tx, tenant)?;
    for key in keys_of(tx, (tenant.project.id, dashboard), |tile| !tile.deleted)? {
        let mut tile: Tile = tx.get(&key)?;
        tile.meta.deleted = true;
        tx.put(&tile)?;
        let Content::Insight(insight) = tile.meta.content else { continue };
        let key = (tenant.project.id, insight);
        if with_insights
            && tx.keys(&BY_INSIGHT, &(key, false), 1)?.is_empty()
            && may_edit(tx, &levels, &key)?
        {
            insights::delete(tx, key, tenant.member.user, now)?;
        } else {
            tx.bump_version::<Insight>(&key)?;
        }
    }
    Ok(())
}

/// Restores all tiles of a restored dashboard, with those of their insights that access rules let the caller edit. As in
/// PostHog, this includes tiles that were deleted before the dashboard was.
pub(in crate::resources::dashboards) fn restore_all(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    now: Timestamp,
) -> Result<()> {
    let levels = CallerLevels::<Insight>::of(tx, tenant)?;
    for key in keys_of(tx, (tenant.project.id, dashboard), |_| true)? {
        let mut tile: Tile = tx.get(&key)?;
        tile.restore();
        tx.put(&tile)?;
        if let Content::Insight(insight) = tile.meta.content {
            restore_insight(tx, &levels, (tenant.project.id, insight), now)?;
        }
    }
    Ok(())
}
