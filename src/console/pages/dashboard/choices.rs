//! The dashboards of a project that forms offer by name.

use serde::Deserialize;

use crate::console::list::List;
use crate::console::pages::dashboard_name;
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::Rights;

/// The maximum number of dashboards that a form offers by name. With more, it takes their ids.
const MAX_CHOICES: u64 = 500;

/// A dashboard that a form may offer.
#[derive(Deserialize)]
pub(in crate::console::pages) struct DashboardChoice {
    pub(in crate::console::pages) id: u64,
    name: Option<String>,
    #[serde(flatten)]
    rights: Rights,
}

impl DashboardChoice {
    pub(in crate::console::pages) fn name(&self) -> &str {
        dashboard_name(self.name.as_deref())
    }

    pub(in crate::console::pages) fn may_edit(&self) -> bool {
        self.rights.may_edit()
    }
}

/// Loads the first dashboards of a project. Returns `None` if the session may not list them.
///
/// # Errors
/// The errors of the API, except refusals.
pub(in crate::console::pages) async fn dashboard_choices(
    request: &SignedIn,
    project: &str,
) -> Result<Option<List<DashboardChoice>>> {
    let path = format!("/api/projects/{project}/dashboards/?limit={MAX_CHOICES}");
    request.api.get_if_allowed(&path).await
}
