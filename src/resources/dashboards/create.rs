//! Creating a dashboard. See `docs/spec/dashboards.md`.

use crate::auth::{Caller, InProject};
use crate::base::error::{Error, Result};
use crate::base::secret::SeededRng;
use crate::base::time::Timestamp;
use crate::ids::DashboardId;
use crate::input::Parsed;
use crate::resources::access_controls::shared::{Shared, require_can_create};
use crate::store::{Tx, WriteTx};

use super::templates::Template;
use super::{Dashboard, DetailsFields, Meta, NewDashboard, api, blank, details, put, tiles};

/// What a new dashboard is created from.
enum Source {
    Nothing,
    Template(Template),
    Copy(Meta),
}

impl Source {
    fn of(tx: &impl Tx, tenant: &InProject, new: &NewDashboard) -> Result<Self> {
        match api::source(new)? {
            (Some(name), _) => Template::built_in(name).map(Self::Template),
            (None, Some(id)) => get_source(tx, tenant, id).map(Self::Copy),
            (None, None) => Ok(Self::Nothing),
        }
    }
}

/// Returns the approximate size of the response in bytes if the request copies a large dashboard.
pub fn large_copy(
    tx: &impl Tx,
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
    let source = Source::of(tx, tenant, new)?;
    let mut dashboard = blank(tx, caller, tenant, now)?;
    let id = dashboard.meta.id;
    let mut details = DetailsFields::default();
    if let Source::Copy(source) = &source {
        begin_copy(tx, source, new.filters.is_some(), &mut dashboard, &mut details)?;
    }
    new.clone().apply_to(&mut dashboard.fields, &mut details);
    if let Source::Template(template) = &source {
        template.fill(&mut dashboard, &mut details)?;
        "template".clone_into(&mut dashboard.fields.creation_mode);
        details.use_template = new.use_template.clone().unwrap_or_default();
    }
    tx.log_about::<Dashboard>(&(tenant.project.id, id));
    put(tx, dashboard, details)?;
    match source {
        Source::Nothing => {}
        Source::Template(template) => template.add_tiles(tx, tenant, id, rng, now)?,
        Source::Copy(source) => {
            let deep = new.duplicate_tiles == Some(true);
            tiles::copy_all(tx, tenant, (source.id, id), deep, rng, now)?;
        }
    }
    Ok(id)
}

/// Returns the dashboard to copy.
///
/// # Errors
/// 400 if it does not exist in the project or is deleted; 403 if the caller may not view it.
fn get_source(tx: &impl Tx, tenant: &InProject, id: DashboardId) -> Result<Meta> {
    let meta = Dashboard::find_live(tx, tenant.project.id, &id)?
        .ok_or_else(|| Error::field("use_dashboard", "invalid_input", "Invalid value provided"))?;
    meta.rights(tx, tenant)?.require_view()?;
    Ok(meta)
}

/// Starts a copy: sets the creation mode and the source, and copies filters and variables unless the
/// request sends `filters`. As in PostHog, all other fields come from the request or are defaults.
fn begin_copy(
    tx: &impl Tx,
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
