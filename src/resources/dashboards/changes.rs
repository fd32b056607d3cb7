//! Creating, updating, deleting and restoring a dashboard. See `docs/spec/dashboards.md`.

use crate::auth::{Caller, InProject};
use crate::resources::access_controls::shared::{Shared, require_can_create};
use crate::resources::projects::Settings;
use crate::resources::shared::prelude::*;

use super::deletions::{self, Deletion};
use super::templates::Template;
use super::tiles::{self, TileChanges};
use super::{
    Dashboard, DashboardPatch, DetailsFields, Meta, NewDashboard, api, blank, details, put,
};

/// Returns the approximate size of the response in bytes if the request copies a large dashboard.
pub fn large_copy(
    tx: &dyn Raw,
    tenant: &InProject,
    new: &Parsed<NewDashboard>,
) -> Result<Option<usize>> {
    match new.get().and_then(api::source) {
        Ok((_, Some(source))) => tiles::large_answer(tx, tenant.project.id, source),
        Ok((_, None)) | Err(_) => Ok(None),
    }
}

/// Creates a dashboard: empty, from a template, or as a copy of another dashboard.
///
/// # Errors
/// 403 if the caller may not create dashboards or may not view the source; 400 for an invalid field, or if
/// the source does not exist.
pub fn create(
    tx: &mut WriteTx<'_>,
    caller: &Caller,
    tenant: &InProject,
    new: &Parsed<NewDashboard>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<DashboardId> {
    require_can_create::<Dashboard>(tx, tenant)?;
    let new = new.get()?;
    let (template, source) = api::source(new)?;
    let template = template.map(Template::built_in).transpose()?;
    let source = source.map(|id| get_source(tx, tenant, id)).transpose()?;
    let mut dashboard = blank(tx, caller, tenant, now)?;
    let id = dashboard.meta.id;
    let mut details = DetailsFields::default();
    if let Some(source) = &source {
        begin_copy(tx, source, new.filters.is_some(), &mut dashboard, &mut details)?;
    }
    new.clone().apply_to(&mut dashboard.fields, &mut details);
    if let Some(template) = &template {
        template.fill(&mut dashboard, &mut details)?;
        "template".clone_into(&mut dashboard.fields.creation_mode);
        details.use_template = new.use_template.clone().unwrap_or_default();
    }
    tx.log_about::<Dashboard>(&(tenant.project.id, id));
    put(tx, dashboard, details)?;
    if let Some(template) = template {
        template.add_tiles(tx, tenant, id, rng, now)?;
    }
    if let Some(source) = source {
        let deep = new.duplicate_tiles == Some(true);
        tiles::copy_all(tx, tenant, (source.id, id), deep, rng, now)?;
    }
    Ok(id)
}

/// Returns the dashboard to copy.
///
/// # Errors
/// 400 if it does not exist in the project or is deleted; 403 if the caller may not view it.
fn get_source(tx: &dyn Raw, tenant: &InProject, id: DashboardId) -> Result<Meta> {
    let meta = Dashboard::find_live(tx, tenant.project.id, &id)?
        .ok_or_else(|| Error::field("use_dashboard", "invalid_input", "Invalid value provided"))?;
    meta.rights(tx, tenant)?.require_view()?;
    Ok(meta)
}

/// Starts a copy: sets the creation mode and the source, and copies filters and variables unless the
/// request sends `filters`. As in PostHog, all other fields come from the request or are defaults.
fn begin_copy(
    tx: &dyn Raw,
    source: &Meta,
    filters: bool,
    dashboard: &mut Dashboard,
    own: &mut DetailsFields,
) -> Result<()> {
    "duplicate".clone_into(&mut dashboard.fields.creation_mode);
    own.use_dashboard = Some(source.id.0);
    if !filters {
        let DetailsFields { filters, variables, .. } = details(tx, source)?;
        (own.filters, own.variables) = (filters, variables);
    }
    Ok(())
}

/// Updates a dashboard and its tiles. `deleted: true` deletes the dashboard; `deleted: false` restores it. That is known even
/// if another field is invalid.
///
/// # Errors
/// 404 if the dashboard does not exist, or is deleted and the request does not restore it; 403 if the
/// caller may not edit it; 400 for an invalid field.
pub fn update(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    id: DashboardId,
    patch: &Parsed<DashboardPatch>,
    deleted: Option<bool>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let mut dashboard: Dashboard = tx.get(&(tenant.project.id, id))?;
    let patch = require_allowed(tx, tenant, &dashboard, patch, deleted)?;
    let was_deleted = dashboard.meta.deleted;
    let mut details = details(tx, &dashboard.meta)?;
    patch.clone().apply_to(&mut dashboard.fields, &mut details);
    tx.log_about::<Dashboard>(&(tenant.project.id, id));
    if was_deleted {
        // The tiles are restored before the request changes them.
        put(tx, dashboard.clone(), details.clone())?;
        tiles::restore_all(tx, tenant, id, now)?;
        tx.remove::<Deletion>(&(tenant.project.id, Object::Dashboard(id)))?;
    }
    let (meta, is_deleted) = (dashboard.meta, dashboard.fields.deleted);
    put_with_tiles(tx, tenant, dashboard, details, patch, rng, now)?;
    if is_deleted {
        return delete(tx, tenant, &meta, patch.delete_insights == Some(true), now);
    }
    Ok(())
}

/// Returns the changes if the caller may make them.
fn require_allowed<'p>(
    tx: &WriteTx<'_>,
    tenant: &InProject,
    dashboard: &Dashboard,
    patch: &'p Parsed<DashboardPatch>,
    deleted: Option<bool>,
) -> Result<&'p DashboardPatch> {
    if dashboard.meta.deleted && deleted != Some(false) {
        return Err(Error::not_found());
    }
    let rights = dashboard.meta.rights(tx, tenant)?;
    rights.require_edit()?;
    let patch = patch.get()?;
    api::require_one_source(patch.use_template.as_deref(), patch.use_dashboard.clone().value())?;
    if patch.restriction_level.is_some_and(|sent| sent != dashboard.fields.restriction_level) {
        rights.require_restrict()?;
    }
    Ok(patch)
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
