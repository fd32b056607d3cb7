//! The organizations and projects that a key can be limited to.

use serde::Deserialize;

use crate::console::form::Choice;
use crate::console::list::List;
use crate::console::model::Project;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The maximum number of organizations or projects that are offered by name.
const MAX_TENANTS: usize = 100;

/// Organizations or projects by name, if the session may list them and there are few.
pub(super) type Choices = Option<Vec<Choice>>;

#[derive(Deserialize)]
struct Me {
    organizations: Vec<Organization>,
}

#[derive(Deserialize)]
struct Organization {
    id: String,
    name: String,
}

/// Returns the organizations and projects of the user.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn tenants(request: &SignedIn) -> Result<(Choices, Choices)> {
    let me = request.api.get_if_allowed::<Me>("/api/users/@me/").await?;
    let mut organizations = me.map(|me| me.organizations);
    if let Some(all) = &mut organizations {
        all.sort_by(|one, other| one.id.cmp(&other.id));
    }
    let path = format!("/api/projects/?limit={MAX_TENANTS}");
    let projects = request.api.get_if_allowed::<List<Project>>(&path).await?;
    let projects = projects.filter(List::is_complete);
    let organization_of = |project: &Project| {
        let mut known = organizations.iter().flatten();
        known.find(|one| one.id == project.organization).map(|one| one.name.as_str())
    };
    let named = |project: Project| {
        let label = match organization_of(&project) {
            Some(organization) => format!("{} ({organization})", project.name),
            None => project.name,
        };
        Choice::new(project.id, label)
    };
    let projects = projects.map(|found| found.results.into_iter().map(named).collect());
    // The list ends after so many, and there may be more.
    let organizations = organizations.filter(|all| all.len() < MAX_TENANTS);
    let organizations =
        organizations.map(|all| all.into_iter().map(|one| Choice::new(one.id, one.name)).collect());
    Ok((organizations, projects))
}
