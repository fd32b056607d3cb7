//! The left column: the user of the session, the organization and the project of a page with links to others, and the links to
//! pages that the session may read.

use crate::base::error::Result;
use crate::console::ROOT;
use crate::console::api::{Api, Operation};
use crate::console::assets::{Icon, icon};
use crate::console::model::{
    CurrentOrganization, List, Me, OrganizationName, Project, ProjectName,
};
use crate::console::visit::{SignedIn, Visit};
use crate::console::words::level_name;

/// An organization or a project, with its page.
#[derive(Debug, Clone)]
pub(super) struct TenantLink {
    pub(super) id: String,
    pub(super) name: String,
    /// A short text below the name.
    pub(super) note: String,
    pub(super) href: String,
    pub(super) is_current: bool,
}

impl TenantLink {
    fn organization(id: &str, name: &str, level: Option<u8>) -> Self {
        let note = level.map_or("Organization", level_name);
        let href = format!("/console/organizations/{id}/");
        let (id, name, note) = (id.to_owned(), name.to_owned(), note.to_owned());
        Self { id, name, note, href, is_current: false }
    }

    fn project(id: u64, name: &str) -> Self {
        let href = format!("/console/projects/{id}/dashboards/");
        let note = format!("Project {id}");
        Self { id: id.to_string(), name: name.to_owned(), note, href, is_current: false }
    }
}

/// The maximum number of organizations in the switcher of a session that may not read the user.
const MAX_ORGANIZATIONS: usize = 50;

/// The user of a session.
#[derive(Default)]
pub(super) struct Account {
    /// The name, or the address if there is no name.
    pub(super) name: String,
    pub(super) email: String,
    pub(super) initials: String,
    pub(super) organizations: Vec<TenantLink>,
    /// The color scheme that the user has chosen, or `None` for that of the system.
    pub(super) theme: Option<&'static str>,
    /// The current project and the projects beside it; the key may be limited to others.
    current: Option<(u64, CurrentOrganization)>,
}

impl Account {
    /// Loads the user. A session without the scope `user:read` has no names, and sees the organizations that it may list, or
    /// else those that its key is limited to.
    pub(super) async fn load(api: &Api) -> Result<Self> {
        let Some(me) = api.get("/api/users/@me/").await.read_if_allowed::<Me>()? else {
            let path = format!("/api/organizations/?limit={MAX_ORGANIZATIONS}");
            let found = api.get(&path).await.read_if_allowed::<List<OrganizationName>>()?;
            let organizations = if let Some(found) = found {
                organization_links(&found.results)
            } else {
                let ids = api.key().await?.map_or(Vec::new(), |key| key.scoped_organizations);
                // Their names are unknown.
                let link = |id: &String| TenantLink::organization(id, "Organization", None);
                ids.iter().map(link).collect()
            };
            let (name, initials) = ("Signed in".to_owned(), "·".to_owned());
            return Ok(Self { name, initials, organizations, ..Self::default() });
        };
        let organizations = organization_links(&me.organizations);
        let chosen = me.theme_mode.as_deref();
        let theme = ["light", "dark"].into_iter().find(|known| chosen == Some(*known));
        let current = me.team.map(|team| team.id).zip(me.organization);
        let (name, initials) = (me.person.name(), me.person.initials());
        Ok(Self { name, email: me.person.email, initials, organizations, theme, current })
    }

    /// Returns an organization, which may be unknown to the user.
    fn organization(&self, id: &str) -> TenantLink {
        let known = self.organizations.iter().find(|known| known.id == id);
        known.cloned().unwrap_or_else(|| TenantLink::organization(id, "Organization", None))
    }
}

fn organization_links(organizations: &[OrganizationName]) -> Vec<TenantLink> {
    let level = |one: &OrganizationName| Some(one.membership_level);
    let links = organizations.iter();
    links.map(|one| TenantLink::organization(&one.id, &one.name, level(one))).collect()
}

/// The maximum number of projects in the switcher.
const MAX_PROJECTS: usize = 100;

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
    pub(super) async fn load(api: &Api, account: &Account, visit: &Visit) -> Result<Self> {
        let current = account.current.as_ref();
        let id = match (visit.project_id(), visit.organization_id()) {
            (Ok(project), _) => project.parse().ok(),
            (_, Ok(id)) if current.is_none_or(|(_, one)| one.id != id) => {
                return Self::of_organization(api, account, &id).await;
            }
            _ => match current {
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
            Some(one) => (Some(one.id.clone()), project_links(&one.projects)),
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
        let projects = projects_of(api, id).await?;
        let project = projects.first().cloned();
        Ok(Self { organization: Some(account.organization(id)), project, projects })
    }
}

/// Returns the first project that the session may list, or else the first one that its key is limited to.
async fn first_project(api: &Api) -> Result<Option<u64>> {
    let listed = api.get("/api/projects/?limit=1").await.read_if_allowed::<List<ProjectName>>()?;
    Ok(match listed {
        Some(listed) => listed.results.first().map(|project| project.id),
        None => projects_of_key(api).await?.first().copied(),
    })
}

/// Returns the projects that the key of the session is limited to.
async fn projects_of_key(api: &Api) -> Result<Vec<u64>> {
    Ok(api.key().await?.map_or(Vec::new(), |key| key.scoped_teams))
}

/// Returns the projects of an organization, as far as the session may list them.
async fn projects_of(api: &Api, organization: &str) -> Result<Vec<TenantLink>> {
    let path = format!("/api/organizations/{organization}/projects/?limit={MAX_PROJECTS}");
    let found = api.get(&path).await.read_if_allowed::<List<ProjectName>>()?;
    Ok(found.map_or(Vec::new(), |found| project_links(&found.results)))
}

fn project_links(projects: &[ProjectName]) -> Vec<TenantLink> {
    projects.iter().map(|project| TenantLink::project(project.id, &project.name)).collect()
}

/// Loads a project outside of the current organization, with its organization's id and projects. A session that may not read
/// the project has those that its key is limited to, without their names.
async fn elsewhere(api: &Api, id: u64) -> Result<(Option<String>, Vec<TenantLink>)> {
    let found = api.get(&format!("/api/projects/{id}/")).await.read_if_allowed::<Project>()?;
    let Some(project) = found else {
        let link = |id| TenantLink::project(id, &format!("Project {id}"));
        return Ok((None, projects_of_key(api).await?.into_iter().map(link).collect()));
    };
    let mut projects = projects_of(api, &project.organization).await?;
    if !projects.iter().any(|link| link.id == project.id.to_string()) {
        projects.insert(0, TenantLink::project(project.id, &project.name));
    }
    Ok((Some(project.organization), projects))
}

/// A link of the navigation.
pub(in crate::console) struct Link {
    pub(super) icon: Icon,
    pub(in crate::console) text: &'static str,
    pub(in crate::console) href: String,
    pub(super) is_current: bool,
}

/// A group of links under a heading.
pub(in crate::console) struct Group {
    pub(in crate::console) heading: String,
    pub(in crate::console) links: Vec<Link>,
    /// Whether the pages are those of a project or an organization.
    pub(in crate::console) is_of_tenant: bool,
}

/// A page of the navigation: its icon and text, the end of its path, and the operation that reads it.
type Entry = (Icon, &'static str, &'static str, &'static str);

const IN_PROJECT: &[Entry] = &[
    (icon("layout-dashboard"), "Dashboards", "dashboards/", "dashboards_list"),
    (icon("chart-line"), "Insights", "insights/", "insights_list"),
    (icon("database-backup"), "Batch exports", "batch_exports/", "projects_batch_exports_list"),
    (icon("shield"), "Access", "access/", "projects_access_controls_retrieve"),
    (icon("history"), "Activity", "activity/", "activity_log_list"),
    (icon("settings"), "Settings", "settings/", "projects_retrieve"),
];

const IN_ORGANIZATION: &[Entry] = &[
    (icon("users"), "Members", "members/", "members_list"),
    (icon("mail"), "Invites", "invites/", "invites_list"),
    (icon("id-card"), "Roles", "roles/", "roles_list"),
    (icon("globe"), "Domains", "domains/", "domains_list"),
    (icon("folder"), "Projects", "projects/", "organizations_projects_list"),
    (icon("history"), "All activity", "activity/", "organizations_activity_log_list"),
    (icon("settings"), "Settings", "settings/", "organizations_retrieve"),
];

const OWN: &[Entry] = &[
    (icon("house"), "Home", "", "personal_api_keys_current"),
    (icon("key-round"), "API keys", "keys/", "personal_api_keys_list"),
    (icon("user"), "Profile", "profile/", "users_retrieve"),
    (icon("monitor"), "Sessions", "sessions/", "users_sessions_list"),
];

const HEALTH: &str = "/console/health/";

/// Returns the groups of links for the page of a request.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn groups(request: &SignedIn, tenant: &Tenant) -> Result<Vec<Group>> {
    let mut groups = Vec::new();
    for (link, entries, list, parameter) in [
        (&tenant.project, IN_PROJECT, "projects", "project_id"),
        (&tenant.organization, IN_ORGANIZATION, "organizations", "organization_id"),
    ] {
        let Some(link) = link else { continue };
        let base = format!("{ROOT}{list}/{}/", link.id);
        let route = format!("{ROOT}{list}/{{{parameter}}}/");
        let links = links(request, entries, &base, &route, Some(&link.id)).await?;
        groups.push(Group { heading: link.name.clone(), links, is_of_tenant: true });
    }
    let own = links(request, OWN, ROOT, ROOT, None).await?;
    groups.push(Group { heading: "You".to_owned(), links: own, is_of_tenant: false });
    if request.session.is_operator {
        let (href, is_current) = (HEALTH.to_owned(), request.visit.route() == HEALTH);
        let health = Link { icon: icon("server"), text: "Health", href, is_current };
        let heading = "Service".to_owned();
        groups.push(Group { heading, links: vec![health], is_of_tenant: false });
    }
    groups.retain(|group| !group.links.is_empty());
    Ok(groups)
}

/// Returns the links to pages below `base`, whose routes are below `route`.
async fn links(
    request: &SignedIn,
    entries: &[Entry],
    base: &str,
    route: &str,
    tenant: Option<&str>,
) -> Result<Vec<Link>> {
    let asked = request.visit.route().strip_prefix(route);
    let mut links = Vec::new();
    for (icon, text, end, operation) in entries {
        let operation = match tenant {
            Some(id) => Operation::new(operation, [id]),
            None => Operation::new(operation, []),
        };
        // All pages are below the start page, and none of them belongs to it.
        let is_current = asked.is_some_and(|asked| {
            if end.is_empty() { asked.is_empty() } else { asked.starts_with(end) }
        });
        if is_current || request.api.may(&operation).await? {
            links.push(Link { icon: *icon, text, href: format!("{base}{end}"), is_current });
        }
    }
    Ok(links)
}
