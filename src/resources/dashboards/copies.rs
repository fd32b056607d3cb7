//! Creating a dashboard as a copy of another.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::resources::access_controls::shared::Shared;
use crate::store::Tx;

use super::{Dashboard, DetailsFields, Meta, details};

/// Returns the dashboard to copy.
///
/// # Errors
/// 400 if it does not exist in the project or is deleted; 403 if the caller may not view it.
pub(super) fn source(tx: &impl Tx, tenant: &InProject, id: DashboardId) -> Result<Meta> {
    let meta = Dashboard::find_live(tx, tenant.project.id, &id)?
        .ok_or_else(|| Error::field("use_dashboard", "invalid_input", "Invalid value provided"))?;
    meta.rights(tx, tenant)?.require_view()?;
    Ok(meta)
}

/// Starts a copy: sets the creation mode and the source, and copies filters and variables unless the
/// request sends `filters`. As in PostHog, all other fields come from the request or are defaults.
pub(super) fn begin(
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
