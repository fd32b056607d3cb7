//! The user, the organizations and the projects that the frame shows.

use serde::Deserialize;

use crate::console::api::Api;
use crate::console::levels::level_name;
use crate::console::person::{Person, initial};
use crate::error::Result;

use super::In;

/// The maximum number of projects in the switcher.
const MAX_PROJECTS: usize = 100;

/// An organization or a project, with its page.
#[derive(Debug, Clone)]
pub(in crate::console) struct Place {
    pub(in crate::console) id: String,
    pub(in crate::console) name: String,
    /// A short text below the name.
    pub(in crate::console) note: String,
    pub(in crate::console) href: String,
    pub(in crate::console) is_current: bool,
}

impl Place {
    fn organization(id: &str, name: &str, level: Option<u8>) -> Self {
        let note = level.map_or("Organization", level_name);
        let href = format!("/console/organizations/{id}/");
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            note: note.to_owned(),
            href,
            is_current: false,
        }
    }

    fn project(id: u64, name: &str) -> Self {
        let href = format!("/console/projects/{id}/dashboards/");
        let note = format!("Project {id}");
        Self { id: id.to_string(), name: name.to_owned(), note, href, is_current: false }
    }

    /// Returns the first letter of the name.
    pub(in crate::console) fn letter(&self) -> String {
        initial(&self.name)
    }
}

/// `/api/users/@me/`.
#[derive(Deserialize)]
struct Me {
    #[serde(flatten)]
    person: Person,
    team: Option<ProjectName>,
    organization: Option<CurrentOrganization>,
    organizations: Vec<OrganizationName>,
}

#[derive(Deserialize)]
struct ProjectName {
    id: u64,
    name: String,
}

#[derive(Deserialize)]
struct OrganizationName {
    id: String,
    name: String,
    membership_level: u8,
}

#[derive(Deserialize)]
struct CurrentOrganization {
    id: String,
    projects: Vec<ProjectName>,
}

/// `/api/projects/:id/`.
#[derive(Deserialize)]
struct ProjectFields {
    id: u64,
    name: String,
    organization: String,
}

/// A page of a list.
#[derive(Deserialize)]
struct Page<T> {
    results: Vec<T>,
}

/// The user of a session.
pub(super) struct Account {
    /// The name, or the address if there is no name.
    pub(super) name: String,
    pub(super) email: String,
    pub(super) initials: String,
    pub(super) organizations: Vec<Place>,
    /// The current project and the projects beside it; the key may be limited to others.
    current: Option<(u64, CurrentOrganization)>,
}

impl Account {
    /// Loads the user. A session without the scope `user:read` has no names.
    pub(super) async fn load(api: &Api) -> Result<Self> {
        let Some(me) = api.get_if_allowed::<Me>("/api/users/@me/").await? else {
            return Ok(Self {
                name: "Signed in".to_owned(),
                email: String::new(),
                initials: "·".to_owned(),
                organizations: Vec::new(),
                current: None,
            });
        };
        let organizations = me.organizations.iter();
        let organizations = organizations
            .map(|one| Place::organization(&one.id, &one.name, Some(one.membership_level)))
            .collect();
        let current = me.team.map(|team| team.id).zip(me.organization);
        let (name, initials) = (me.person.name(), me.person.initials());
        Ok(Self { name, email: me.person.email, initials, organizations, current })
    }

    /// Returns an organization, which may be unknown to the user.
    fn organization(&self, id: &str) -> Place {
        let known = self.organizations.iter().find(|known| known.id == id);
        known.cloned().unwrap_or_else(|| Place::organization(id, "Organization", None))
    }
}

/// The organization and the project of a page.
pub(super) struct Tenant {
    pub(super) organization: Option<Place>,
    pub(super) project: Option<Place>,
    /// The projects of the organization, at most [`MAX_PROJECTS`].
    pub(super) projects: Vec<Place>,
}

impl Tenant {
    /// Loads the project in the page's path, or else the current project, with its organization; or the organization in
    /// the path, with the current project if that belongs to it.
    pub(super) async fn load(api: &Api, account: &Account, tenant: In<'_>) -> Result<Self> {
        let current = account.current.as_ref();
        let id = match tenant {
            In::Project(text) => text.parse().ok(),
            In::Organization(id) if current.is_none_or(|(_, one)| one.id != id) => {
                return Self::of_organization(api, account, id).await;
            }
            In::Organization(_) | In::Nothing => current.map(|(id, _)| *id),
        };
        let Some(id) = id else {
            return Ok(Self { organization: None, project: None, projects: Vec::new() });
        };
        let beside = current.map(|(_, organization)| organization);
        let beside = beside.filter(|one| one.projects.iter().any(|project| project.id == id));
        let (organization, projects) = match beside {
            Some(one) => (Some(one.id.clone()), places(&one.projects)),
            None => elsewhere(api, id).await?,
        };
        let mut found = Self {
            project: Some(Place::project(id, &format!("Project {id}"))),
            organization: organization.map(|id| account.organization(&id)),
            projects,
        };
        let key = id.to_string();
        for place in found.projects.iter_mut().filter(|place| place.id == key) {
            place.is_current = true;
            found.project = Some(place.clone());
        }
        found.projects.truncate(MAX_PROJECTS);
        Ok(found)
    }

    /// Loads an organization that is not the current one. Its first project counts as the current one.
    async fn of_organization(api: &Api, account: &Account, id: &str) -> Result<Self> {
        let path = format!("/api/organizations/{id}/projects/?limit={MAX_PROJECTS}");
        let found = api.get_if_allowed::<Page<ProjectName>>(&path).await?;
        let projects = found.map_or(Vec::new(), |page| places(&page.results));
        let project = projects.first().cloned();
        Ok(Self { organization: Some(account.organization(id)), project, projects })
    }
}

fn places(projects: &[ProjectName]) -> Vec<Place> {
    projects.iter().map(|project| Place::project(project.id, &project.name)).collect()
}

/// Loads a project outside of the current organization, with its organization's id and projects.
async fn elsewhere(api: &Api, id: u64) -> Result<(Option<String>, Vec<Place>)> {
    let found = api.get_if_allowed::<ProjectFields>(&format!("/api/projects/{id}/")).await?;
    let Some(project) = found else { return Ok((None, Vec::new())) };
    let path =
        format!("/api/organizations/{}/projects/?limit={MAX_PROJECTS}", project.organization);
    let beside = api.get_if_allowed::<Page<ProjectName>>(&path).await?;
    let mut projects = beside.map_or(Vec::new(), |page| places(&page.results));
    if !projects.iter().any(|place| place.id == project.id.to_string()) {
        projects.insert(0, Place::project(project.id, &project.name));
    }
    Ok((Some(project.organization), projects))
}
