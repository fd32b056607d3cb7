//! What the member may do in the projects that the session sees.

use serde::Deserialize;

use crate::console::failure::Failure;
use crate::console::list::List;
use crate::console::operation::Operation;
use crate::console::paging::Paging;
use crate::console::visit::SignedIn;

/// The number of projects on a page.
const PAGE_SIZE: u64 = 50;

/// A project, with the level of the member and the rule that decides it.
#[derive(Deserialize)]
pub(super) struct Project {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) access_control: bool,
    access_level: String,
    pub(super) role: Option<String>,
    pub(super) role_name: Option<String>,
    pub(super) text: String,
}

impl Project {
    /// Returns the level in words, and the class of its tag.
    pub(super) fn level(&self) -> (&str, &'static str) {
        match self.access_level.as_str() {
            "none" => ("No access", "warn"),
            "member" => ("Member", ""),
            "admin" => ("Admin", "on"),
            other => (other, ""),
        }
    }
}

/// A page of the projects.
pub(super) struct Projects {
    pub(super) list: Vec<Project>,
    pub(super) paging: Paging,
    /// Whether the session may read the rules on the projects.
    pub(super) may_read_rules: bool,
}

/// Loads the projects, if the session may read access rules.
///
/// # Errors
/// Those of [`Paging::new`] and of the API, except refusals.
pub(super) async fn load(
    request: &SignedIn,
    organization: &str,
    user: &str,
) -> Result<Option<Projects>, Failure> {
    let offset = Paging::offset(&request.visit);
    let path = format!(
        "/api/organizations/{organization}/members/{user}/projects/?limit={PAGE_SIZE}&offset={offset}"
    );
    let found = request.api.get_if_allowed::<List<Project>>(&path).await?;
    let Some(List { count, results }) = found else { return Ok(None) };
    let page = format!("/console/organizations/{organization}/members/{user}/");
    let url = |offset| format!("{page}?offset={offset}");
    let may_read_rules = match results.first() {
        Some(project) => {
            let id = project.id.to_string();
            request.api.may(&Operation::new("projects_access_controls_retrieve", [&id])).await?
        }
        None => false,
    };
    let paging = Paging::new(&request.visit, results.len(), count, PAGE_SIZE, url)?;
    Ok(Some(Projects { list: results, paging, may_read_rules }))
}
