//! The projects of the organization that the session sees.

use serde::Deserialize;

use crate::console::list::List;
use crate::console::operation::Operation;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The maximum number of projects on the page.
const MAX_PROJECTS: u64 = 100;

/// A project, as the API describes it.
#[derive(Deserialize)]
pub(super) struct Project {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) access_control: bool,
    /// Whether the session may read the rules of the project.
    #[serde(skip)]
    pub(super) may_read_access: bool,
}

/// Loads the projects.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn load(request: &SignedIn, organization: &str) -> Result<Vec<Project>> {
    let path = format!("/api/organizations/{organization}/projects/?limit={MAX_PROJECTS}");
    let found = request.api.get_if_allowed::<List<Project>>(&path).await?;
    let mut projects = found.unwrap_or_default().results;
    for project in &mut projects {
        let id = project.id.to_string();
        let access = Operation::new("projects_access_controls_retrieve", [&id]);
        project.may_read_access = request.api.may(&access).await?;
    }
    Ok(projects)
}
