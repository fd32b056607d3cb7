//! Updating, deleting and restoring a dashboard. See `docs/spec/dashboards.md`.

use crate::auth::InProject;
use crate::base::error::{Error, Result};
use crate::base::secret::SeededRng;
use crate::base::time::Timestamp;
use crate::ids::DashboardId;
use crate::resources::access_controls::shared::Shared;
use crate::resources::projects::Settings;
use crate::resources::shared::access_objects::Object;
use crate::store::{Tx, WriteTx};

use super::deletions::{self, Deletion};
use super::tiles::{self, TileChanges};
use super::{Dashboard, DashboardPatch, DetailsFields, Meta, ParsedPatch, api, details, put};

/// Updates a dashboard and its tiles. `deleted: true` deletes the dashboard; `deleted: false` restores it.
///
/// # Errors
/// 404 if the dashboard does not exist, or is deleted and the request does not restore it; 403 if the
/// caller may not edit it; 400 for an invalid field.
pub fn update(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    id: DashboardId,
    patch: &ParsedPatch,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let mut dashboard: Dashboard = tx.get(&(tenant.project.id, id))?;
    let patch = require_allowed(tx, tenant, &dashboard, patch)?;
    let was_deleted = dashboard.meta.deleted;
    let mut details = details(tx, &dashboard.meta)?;
    patch.clone().apply_to(&mut dashboard.fields, &mut details);
    tx.log_about::<Dashboard>(&(tenant.project.id, id));
    if was_deleted {
        restore(tx, tenant, dashboard.clone(), details.clone(), now)?;
    }
    let (meta, deleted) = (dashboard.meta, dashboard.fields.deleted);
    put_with_tiles(tx, tenant, dashboard, details, patch, rng, now)?;
    if deleted {
        return delete(tx, tenant, &meta, patch.delete_insights == Some(true), now);
    }
    Ok(())
}

/// Returns the changes if the caller may make them.
fn require_allowed<'p>(
    tx: &WriteTx<'_>,
    tenant: &InProject,
    dashboard: &Dashboard,
    patch: &'p ParsedPatch,
) -> Result<&'p DashboardPatch> {
    if dashboard.meta.deleted && !patch.restores {
        return Err(Error::not_found());
    }
    let rights = dashboard.meta.rights(tx, tenant)?;
    rights.require_edit()?;
    let patch = patch.fields.get()?;
    api::require_one_source(patch)?;
    if patch.restriction_level.is_some_and(|sent| sent != dashboard.fields.restriction_level) {
        rights.require_restrict()?;
    }
    Ok(patch)
}

/// Restores a deleted dashboard with its tiles. The request changes the tiles after that.
fn restore(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: Dashboard,
    details: DetailsFields,
    now: Timestamp,
) -> Result<()> {
    let id = dashboard.meta.id;
    put(tx, dashboard, details)?;
    tiles::restore_all(tx, tenant, id, now)?;
    tx.remove::<Deletion>(&(tenant.project.id, Object::Dashboard(id)))?;
    Ok(())
}

/// Stores a dashboard, and changes and duplicates its tiles.
fn put_with_tiles(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: Dashboard,
    details: DetailsFields,
    patch: &DashboardPatch,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let id = dashboard.meta.id;
    let mut changes = match &patch.tiles {
        Some(sent) => tiles::change(tx, tenant, id, sent, now)?,
        None => TileChanges::default(),
    };
    let duplicates = patch.duplicate_tiles.as_deref().filter(|sent| !sent.is_empty());
    if duplicates.is_some() {
        changes.dashboards.insert(id);
    }
    put(tx, dashboard, details)?;
    for dashboard in &changes.dashboards {
        tx.bump_version::<Dashboard>(&(tenant.project.id, *dashboard))?;
    }
    if let Some(sent) = duplicates {
        tiles::duplicate(tx, tenant, id, sent, rng, now)?;
    }
    changes.note_insights(tx, tenant, now)
}

/// Deletes the tiles of a dashboard, records the deletion, and clears the project's `primary_dashboard` if it was this
/// one. With `with_insights`, also deletes the insights that no other dashboard shows.
fn delete(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    meta: &Meta,
    with_insights: bool,
    now: Timestamp,
) -> Result<()> {
    tiles::delete_all(tx, tenant, meta.id, with_insights, now)?;
    let mut settings: Settings = tx.get(&(meta.organization, meta.project))?;
    if settings.fields.primary_dashboard == Some(meta.id.0) {
        settings.fields.primary_dashboard = None;
        settings.fields.updated_at = now;
        tx.put(&settings)?;
    }
    deletions::record(tx, Dashboard::shared(meta), tenant.member.user, now)
}
