//! The organization and the project of a page, with the projects beside it.

use crate::console::api::Api;
use crate::console::model::{List, Project};
use crate::error::Result;

use super::account::{Account, KeyLimits, ProjectName, TenantLink};

/// The maximum number of projects in the switcher.
const MAX_PROJECTS: usize = 100;

/// The tenant in the path of a page.
#[derive(Debug, Clone, Copy)]
pub(in crate::console) enum In<'p> {
    /// A project, by its id.
    Project(&'p str),
    /// An organization, by its id.
    Organization(&'p str),
    /// None: the frame shows the current project, or else what the session sees first.
    Nothing,
}

/// The organization and the project of a page.
pub(super) struct Tenant {
    pub(super) organization: Option<TenantLink>,
    pub(super) project: Option<TenantLink>,
    /// The projects of the organization, at most [`MAX_PROJECTS`].
    pub(super) projects: Vec<TenantLink>,
}

impl Tenant {
    /// Loads the project in the page's path, or else the current project, with its organization; or the organization in
    /// the path, with the current project if that belongs to it. Without a current project, that is the first project that
    /// the session sees, or else its first organization.
    pub(super) async fn load(api: &Api, account: &Account, tenant: In<'_>) -> Result<Self> {
        let current = account.current.as_ref();
        let id = match tenant {
            In::Project(text) => text.parse().ok(),
            In::Organization(id) if current.is_none_or(|(_, one)| one.id != id) => {
                return Self::of_organization(api, account, id).await;
            }
            In::Organization(_) => current.map(|(id, _)| *id),
            In::Nothing => match current {
                Some((id, _)) => Some(*id),
                None => first_project(api).await?,
            },
        };
        let Some(id) = id else {
            return match account.organizations.first() {
                Some(first) => Self::of_organization(api, account, &first.id).await,
                None => Ok(Self { organization: None, project: None, projects: Vec::new() }),
            };
        };
        let beside = current.map(|(_, organization)| organization);
        let beside = beside.filter(|one| one.projects.iter().any(|project| project.id == id));
        let (organization, projects) = match beside {
            Some(one) => (Some(one.id.clone()), links(&one.projects)),
            None => elsewhere(api, id).await?,
        };
        let mut found = Self {
            project: Some(TenantLink::project(id, &format!("Project {id}"))),
            organization: organization.map(|id| account.organization(&id)),
            projects,
        };
        let key = id.to_string();
        for link in found.projects.iter_mut().filter(|link| link.id == key) {
            link.is_current = true;
            found.project = Some(link.clone());
        }
        found.projects.truncate(MAX_PROJECTS);
        Ok(found)
    }

    /// Loads an organization that is not the current one. Its first project counts as the current one.
    async fn of_organization(api: &Api, account: &Account, id: &str) -> Result<Self> {
        let path = format!("/api/organizations/{id}/projects/?limit={MAX_PROJECTS}");
        let found = api.get_if_allowed::<List<ProjectName>>(&path).await?;
        let projects = found.map_or(Vec::new(), |found| links(&found.results));
        let project = projects.first().cloned();
        Ok(Self { organization: Some(account.organization(id)), project, projects })
    }
}

/// Returns the first project that the session may list, or else the first one that its key is limited to.
async fn first_project(api: &Api) -> Result<Option<u64>> {
    let listed = api.get_if_allowed::<List<ProjectName>>("/api/projects/?limit=1").await?;
    let ids: Vec<u64> = match listed {
        Some(listed) => listed.results.iter().map(|project| project.id).collect(),
        None => KeyLimits::load(api).await?.projects,
    };
    Ok(ids.first().copied())
}

fn links(projects: &[ProjectName]) -> Vec<TenantLink> {
    projects.iter().map(|project| TenantLink::project(project.id, &project.name)).collect()
}

/// Loads a project outside of the current organization, with its organization's id and projects. A session that may not read
/// the project has those that its key is limited to, without their names.
async fn elsewhere(api: &Api, id: u64) -> Result<(Option<String>, Vec<TenantLink>)> {
    let found = api.get_if_allowed::<Project>(&format!("/api/projects/{id}/")).await?;
    let Some(project) = found else {
        let ids = KeyLimits::load(api).await?.projects;
        let link = |id| TenantLink::project(id, &format!("Project {id}"));
        return Ok((None, ids.into_iter().map(link).collect()));
    };
    let path =
        format!("/api/organizations/{}/projects/?limit={MAX_PROJECTS}", project.organization);
    let beside = api.get_if_allowed::<List<ProjectName>>(&path).await?;
    let mut projects = beside.map_or(Vec::new(), |found| links(&found.results));
    if !projects.iter().any(|link| link.id == project.id.to_string()) {
        projects.insert(0, TenantLink::project(project.id, &project.name));
    }
    Ok((Some(project.organization), projects))
}
