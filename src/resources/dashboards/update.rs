//! Changing a dashboard (facts-dashboards §2, §4, §7).

use std::collections::BTreeSet;

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::secret::Draw;
use crate::store::{Tx, WriteTx};
use crate::time::Timestamp;

use super::{Dashboard, DashboardPatch, Sent, details, input, put, removals, tiles};

/// Changes a dashboard and its tiles; also removes it (`deleted: true`) and brings it back
/// (`{"deleted": false}` alone).
///
/// # Errors
/// 404 for none, or a removed one; 403 for one that the caller may not edit; 400 for a field.
pub fn update(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    id: DashboardId,
    patch: &Sent<DashboardPatch>,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<()> {
    let mut dashboard: Dashboard = tx.get(&(place.project.id, id))?;
    let was_deleted = dashboard.head.deleted;
    if was_deleted && !patch.only_restores() {
        return Err(Error::not_found());
    }
    let rights = dashboard.head.rights(tx, place)?;
    rights.require_edit()?;
    let patch = patch.get()?;
    input::require_one_source(patch)?;
    if patch.restriction_level.is_some() {
        rights.require_restrict()?;
    }
    let mut details = details(tx, &dashboard.head)?;
    input::apply(patch.clone(), &mut dashboard, &mut details);
    let deleted = dashboard.head.deleted;
    let mut changed = update_tiles(tx, place, id, patch, draw, now)?;
    // Before what else it brings about: the activity entry is about the dashboard.
    put(tx, dashboard, details)?;
    let own = changed.take(&id);
    for dashboard in own.into_iter().chain(changed) {
        tx.touch::<Dashboard>(&(place.project.id, dashboard))?;
    }
    match (was_deleted, deleted) {
        (false, true) => removals::remove(tx, place, id, patch.delete_insights == Some(true), now),
        (true, false) => removals::restore(tx, place, id, now),
        _ => Ok(()),
    }
}

/// Answers the dashboards whose tiles changed.
fn update_tiles(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    id: DashboardId,
    patch: &DashboardPatch,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<BTreeSet<DashboardId>> {
    let mut changed = BTreeSet::new();
    if let Some(sent) = &patch.tiles {
        changed = tiles::change(tx, place, id, sent, now)?;
    }
    if let Some(sent) = patch.duplicate_tiles.as_ref().filter(|sent| !sent.is_empty()) {
        tiles::duplicate(tx, place, id, sent, draw, now)?;
        changed.insert(id);
    }
    Ok(changed)
}
