//! The links in the left column: only to pages that the session may read.

use crate::base::error::Result;
use crate::console::ROOT;
use crate::console::api::Operation;
use crate::console::assets::{Icon, icon};
use crate::console::visit::SignedIn;

use super::account::Tenant;

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
    if request.session.is_operator() {
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
