//! The links in the left column: only to pages that the session may read.

use crate::base::error::Result;
use crate::console::api::Operation;
use crate::console::assets::{Icon, icon};
use crate::console::visit::SignedIn;

use super::account::Tenant;

/// The part of the console that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::console) enum Section {
    Home,
    Dashboards,
    Insights,
    BatchExports,
    ProjectAccess,
    ProjectActivity,
    ProjectSettings,
    Members,
    Roles,
    Invites,
    Domains,
    Projects,
    OrganizationActivity,
    OrganizationSettings,
    Profile,
    Keys,
    Sessions,
    Health,
    Other,
}

/// A link of the navigation.
pub(super) struct Link {
    pub(super) icon: Icon,
    pub(super) text: &'static str,
    pub(super) href: String,
    pub(super) is_current: bool,
}

/// A group of links under a heading.
pub(super) struct Group {
    pub(super) heading: String,
    pub(super) links: Vec<Link>,
    /// Whether the pages are those of a project or an organization.
    pub(super) is_of_tenant: bool,
}

/// A page of the navigation: the section, its icon and text, the end of its path, and the operation that reads it.
type Entry = (Section, Icon, &'static str, &'static str, &'static str);

const IN_PROJECT: &[Entry] = &[
    (Section::Dashboards, icon("layout-dashboard"), "Dashboards", "dashboards/", "dashboards_list"),
    (Section::Insights, icon("chart-line"), "Insights", "insights/", "insights_list"),
    (
        Section::BatchExports,
        icon("database-backup"),
        "Batch exports",
        "batch_exports/",
        "projects_batch_exports_list",
    ),
    (
        Section::ProjectAccess,
        icon("shield"),
        "Access",
        "access/",
        "projects_access_controls_retrieve",
    ),
    (Section::ProjectActivity, icon("history"), "Activity", "activity/", "activity_log_list"),
    (Section::ProjectSettings, icon("settings"), "Settings", "settings/", "projects_retrieve"),
];

const IN_ORGANIZATION: &[Entry] = &[
    (Section::Members, icon("users"), "Members", "members/", "members_list"),
    (Section::Invites, icon("mail"), "Invites", "invites/", "invites_list"),
    (Section::Roles, icon("id-card"), "Roles", "roles/", "roles_list"),
    (Section::Domains, icon("globe"), "Domains", "domains/", "domains_list"),
    (Section::Projects, icon("folder"), "Projects", "projects/", "organizations_projects_list"),
    (
        Section::OrganizationActivity,
        icon("history"),
        "All activity",
        "activity/",
        "organizations_activity_log_list",
    ),
    (
        Section::OrganizationSettings,
        icon("settings"),
        "Settings",
        "settings/",
        "organizations_retrieve",
    ),
];

const OWN: &[Entry] = &[
    (Section::Home, icon("house"), "Home", "", "personal_api_keys_current"),
    (Section::Keys, icon("key-round"), "API keys", "keys/", "personal_api_keys_list"),
    (Section::Profile, icon("user"), "Profile", "profile/", "users_retrieve"),
    (Section::Sessions, icon("monitor"), "Sessions", "sessions/", "users_sessions_list"),
];

/// Returns the groups of links for a page of `section`.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn groups(
    request: &SignedIn,
    tenant: &Tenant,
    section: Section,
) -> Result<Vec<Group>> {
    let mut groups = Vec::new();
    if let Some(link) = &tenant.project {
        let base = format!("/console/projects/{}/", link.id);
        let links = links(request, section, IN_PROJECT, &base, Some(&link.id)).await?;
        groups.push(Group { heading: link.name.clone(), links, is_of_tenant: true });
    }
    if let Some(link) = &tenant.organization {
        let base = format!("/console/organizations/{}/", link.id);
        let links = links(request, section, IN_ORGANIZATION, &base, Some(&link.id)).await?;
        groups.push(Group { heading: link.name.clone(), links, is_of_tenant: true });
    }
    let own = links(request, section, OWN, "/console/", None).await?;
    groups.push(Group { heading: "You".to_owned(), links: own, is_of_tenant: false });
    if request.session.is_operator() {
        let is_current = section == Section::Health;
        let href = "/console/health/".to_owned();
        let health = Link { icon: icon("server"), text: "Health", href, is_current };
        let heading = "Service".to_owned();
        groups.push(Group { heading, links: vec![health], is_of_tenant: false });
    }
    groups.retain(|group| !group.links.is_empty());
    Ok(groups)
}

async fn links(
    request: &SignedIn,
    section: Section,
    entries: &[Entry],
    base: &str,
    tenant: Option<&str>,
) -> Result<Vec<Link>> {
    let mut links = Vec::new();
    for (of, icon, text, end, operation) in entries {
        let operation = match tenant {
            Some(id) => Operation::new(operation, [id]),
            None => Operation::new(operation, []),
        };
        let is_current = section == *of;
        if is_current || request.api.may(&operation).await? {
            links.push(Link { icon: *icon, text, href: format!("{base}{end}"), is_current });
        }
    }
    Ok(links)
}
