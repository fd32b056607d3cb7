//! The dashboards of a project that forms offer by name.

use crate::console::model::{Dashboard, List};
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The maximum number of dashboards that a form offers by name. With more, it takes their ids.
const MAX_CHOICES: u64 = 500;

/// The maximum number of dashboards whose names are read one by one.
const MAX_READ: usize = 10;

/// Returns these dashboards with their names. Beyond the dashboards that a form offers, only the first ones have theirs.
///
/// # Errors
/// The errors of the API, except refusals.
pub(in crate::console::pages) async fn dashboard_names(
    request: &SignedIn,
    project: &str,
    ids: &[u64],
) -> Result<Vec<(u64, String)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let listed = dashboard_choices(request, project).await?.unwrap_or_default().results;
    let (mut named, mut read) = (Vec::new(), 0);
    for id in ids {
        let mut name = listed.iter().find(|one| one.id == *id).map(|one| one.name().to_owned());
        if name.is_none() && read < MAX_READ {
            read += 1;
            let path = format!("/api/projects/{project}/dashboards/{id}/");
            let found: Option<Dashboard> = request.api.get_if_allowed(&path).await?;
            name = found.map(|one| one.name().to_owned());
        }
        named.push((*id, name.unwrap_or_else(|| format!("Dashboard {id}"))));
    }
    Ok(named)
}

/// Loads the first dashboards of a project. Returns `None` if the session may not list them.
///
/// # Errors
/// The errors of the API, except refusals.
pub(in crate::console::pages) async fn dashboard_choices(
    request: &SignedIn,
    project: &str,
) -> Result<Option<List<Dashboard>>> {
    let path = format!("/api/projects/{project}/dashboards/?limit={MAX_CHOICES}");
    request.api.get_if_allowed(&path).await
}
