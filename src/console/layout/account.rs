//! The user of the session, and the links to organizations and projects.

use serde::Deserialize;

use crate::console::api::Api;
use crate::console::model::{List, Person, initial};
use crate::console::words::level_name;
use crate::error::Result;

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
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            note: note.to_owned(),
            href,
            is_current: false,
        }
    }

    pub(super) fn project(id: u64, name: &str) -> Self {
        let href = format!("/console/projects/{id}/dashboards/");
        let note = format!("Project {id}");
        Self { id: id.to_string(), name: name.to_owned(), note, href, is_current: false }
    }

    /// Returns the first letter of the name.
    pub(super) fn letter(&self) -> String {
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
    theme_mode: Option<String>,
}

/// A project, as the API describes it in lists.
#[derive(Deserialize)]
pub(super) struct ProjectName {
    pub(super) id: u64,
    pub(super) name: String,
}

#[derive(Deserialize)]
struct OrganizationName {
    id: String,
    name: String,
    membership_level: u8,
}

#[derive(Deserialize)]
pub(super) struct CurrentOrganization {
    pub(super) id: String,
    pub(super) projects: Vec<ProjectName>,
}

/// What the key of the session is limited to. Empty without a limit and without a key.
#[derive(Default, Deserialize)]
pub(super) struct KeyLimits {
    scoped_organizations: Vec<String>,
    #[serde(rename = "scoped_teams")]
    pub(super) projects: Vec<u64>,
}

impl KeyLimits {
    pub(super) async fn load(api: &Api) -> Result<Self> {
        let found = api.get_if_allowed("/api/personal_api_keys/@current/").await?;
        Ok(found.unwrap_or_default())
    }
}

/// The maximum number of organizations in the switcher of a session that may not read the user.
const MAX_ORGANIZATIONS: usize = 50;

/// The user of a session.
pub(super) struct Account {
    /// The name, or the address if there is no name.
    pub(super) name: String,
    pub(super) email: String,
    pub(super) initials: String,
    pub(super) organizations: Vec<TenantLink>,
    /// The color scheme that the user has chosen, or `None` for that of the system.
    pub(super) theme: Option<&'static str>,
    /// The current project and the projects beside it; the key may be limited to others.
    pub(super) current: Option<(u64, CurrentOrganization)>,
}

impl Account {
    /// Loads the user. A session without the scope `user:read` has no names, and sees the organizations that it may list, or
    /// else those that its key is limited to.
    pub(super) async fn load(api: &Api) -> Result<Self> {
        let Some(me) = api.get_if_allowed::<Me>("/api/users/@me/").await? else {
            let path = format!("/api/organizations/?limit={MAX_ORGANIZATIONS}");
            let organizations = match api.get_if_allowed::<List<OrganizationName>>(&path).await? {
                Some(found) => links(&found.results),
                None => organizations_of_key(api).await?,
            };
            return Ok(Self {
                name: "Signed in".to_owned(),
                email: String::new(),
                initials: "·".to_owned(),
                organizations,
                theme: None,
                current: None,
            });
        };
        let organizations = links(&me.organizations);
        let chosen = me.theme_mode.as_deref();
        let theme = ["light", "dark"].into_iter().find(|known| chosen == Some(*known));
        let current = me.team.map(|team| team.id).zip(me.organization);
        let (name, initials) = (me.person.name(), me.person.initials());
        Ok(Self { name, email: me.person.email, initials, organizations, theme, current })
    }

    /// Returns an organization, which may be unknown to the user.
    pub(super) fn organization(&self, id: &str) -> TenantLink {
        let known = self.organizations.iter().find(|known| known.id == id);
        known.cloned().unwrap_or_else(|| TenantLink::organization(id, "Organization", None))
    }
}

/// Returns the organizations that the key of the session is limited to. Their names are unknown.
async fn organizations_of_key(api: &Api) -> Result<Vec<TenantLink>> {
    let ids = KeyLimits::load(api).await?.scoped_organizations;
    let link = |id: &String| TenantLink::organization(id, "Organization", None);
    Ok(ids.iter().map(link).collect())
}

fn links(organizations: &[OrganizationName]) -> Vec<TenantLink> {
    let links = organizations.iter();
    links
        .map(|one| TenantLink::organization(&one.id, &one.name, Some(one.membership_level)))
        .collect()
}
