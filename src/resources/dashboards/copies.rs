//! Making a dashboard from another (facts-dashboards §5).

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::store::Tx;

use super::{Dashboard, DetailsShown, Head, details};

/// The dashboard that a new one is to be made from.
///
/// # Errors
/// 400 for none in the project, or a removed one; 403 for one that the caller may not see.
pub(super) fn source(tx: &impl Tx, place: &InProject, id: DashboardId) -> Result<Head> {
    let head = tx.head::<Dashboard>(&(place.project.id, id))?.filter(|head| !head.deleted);
    let head = head
        .ok_or_else(|| Error::field("use_dashboard", "invalid_input", "Invalid value provided"))?;
    head.rights(tx, place)?.require_view()?;
    Ok(head)
}

/// Makes a new dashboard a copy: what the request does not say comes later, all but filters and variables
/// from the defaults. Those are the source's, unless the request `filters` itself.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn begin(
    tx: &impl Tx,
    source: &Head,
    filters: bool,
    dashboard: &mut Dashboard,
    own: &mut DetailsShown,
) -> Result<()> {
    "duplicate".clone_into(&mut dashboard.shown.creation_mode);
    own.use_dashboard = Some(source.id.0);
    if !filters {
        let DetailsShown { filters, variables, .. } = details(tx, source)?;
        (own.filters, own.variables) = (filters, variables);
    }
    Ok(())
}
