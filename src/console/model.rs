//! Objects of the API, as far as pages show them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::words::{MAY_EDIT, is_editor, is_restricted};
pub(super) use crate::resources::sharing::page::{dashboard_name, insight_name, name_or};

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct List<T> {
    /// The number of items on all pages.
    pub(super) count: u64,
    pub(super) results: Vec<T>,
}

impl<T> List<T> {
    /// Returns whether the page has all items.
    pub(super) fn is_complete(&self) -> bool {
        self.results.len() as u64 == self.count
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { count: 0, results: Vec::new() }
    }
}

/// The names and the address of a user.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Person {
    pub(super) first_name: String,
    pub(super) last_name: String,
    pub(super) email: String,
}

impl Person {
    /// Returns the name, or the address if there is no name.
    pub(super) fn name(&self) -> String {
        match format!("{} {}", self.first_name.trim(), self.last_name.trim()).trim() {
            "" => self.email.clone(),
            name => name.to_owned(),
        }
    }

    /// Returns the name with the address, for a choice among people.
    pub(super) fn label(&self) -> String {
        let name = self.name();
        if name == self.email || self.email.is_empty() {
            return name;
        }
        format!("{name}, {}", self.email)
    }

    /// Returns the first letters of the names, or of the address.
    pub(super) fn initials(&self) -> String {
        match (self.first_name.trim(), self.last_name.trim()) {
            ("", "") => initial(&self.email),
            (first, "") => initial(first),
            ("", last) => initial(last),
            (first, last) => initial(first) + &initial(last),
        }
    }
}

/// A user with the ids.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct User {
    pub(super) id: u64,
    pub(super) uuid: String,
    #[serde(flatten)]
    pub(super) person: Person,
}

/// The user of the session.
#[derive(Deserialize)]
pub(super) struct Me {
    #[serde(flatten)]
    pub(super) person: Person,
    /// The current project.
    pub(super) team: Option<ProjectName>,
    /// The organization of the current project.
    pub(super) organization: Option<CurrentOrganization>,
    pub(super) organizations: Vec<OrganizationName>,
    pub(super) theme_mode: Option<String>,
}

/// A project, as the API describes it in lists.
#[derive(Deserialize)]
pub(super) struct ProjectName {
    pub(super) id: u64,
    pub(super) name: String,
}

/// An organization, as the API describes it in lists.
#[derive(Deserialize)]
pub(super) struct OrganizationName {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) membership_level: u8,
}

#[derive(Deserialize)]
pub(super) struct CurrentOrganization {
    pub(super) id: String,
    pub(super) projects: Vec<ProjectName>,
}

#[derive(Deserialize)]
pub(super) struct Organization {
    pub(super) name: String,
    pub(super) slug: String,
    pub(super) member_count: u64,
}

/// A member of an organization.
#[derive(Deserialize)]
pub(super) struct Member {
    /// The id of the membership.
    pub(super) id: String,
    pub(super) user: User,
    pub(super) level: u8,
    pub(super) joined_at: String,
    pub(super) invited_by: Option<Person>,
    pub(super) joined_by: Option<String>,
}

/// A role, as the API describes it in basic form.
#[derive(Deserialize)]
pub(super) struct Role {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created_at: String,
    pub(super) member_count: u64,
    pub(super) is_default: bool,
}

/// The domain of an organization.
#[derive(Deserialize)]
pub(super) struct Domain {
    pub(super) id: String,
    #[serde(rename = "domain")]
    pub(super) name: String,
    pub(super) is_verified: bool,
    pub(super) verified_at: Option<String>,
    pub(super) jit_provisioning_enabled: bool,
    pub(super) sso_enforcement: String,
    pub(super) has_saml: bool,
    pub(super) saml_x509_cert: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Project {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) organization: String,
    pub(super) api_token: String,
    pub(super) is_demo: bool,
    pub(super) timezone: String,
    pub(super) access_control: bool,
}

/// An invite that is pending or has expired.
#[derive(Deserialize)]
pub(super) struct Invite {
    pub(super) id: String,
    pub(super) target_email: String,
    pub(super) first_name: String,
    pub(super) level: u8,
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) private_project_access: Vec<ProjectAccess>,
    pub(super) send_email: bool,
    pub(super) is_expired: bool,
    pub(super) expires_at: String,
    pub(super) created_by: Option<Person>,
    pub(super) created_at: String,
}

/// The access to a project that an invite gives. The level is shown as it was sent.
#[derive(Deserialize, Serialize)]
pub(super) struct ProjectAccess {
    pub(super) id: u64,
    pub(super) level: Value,
}

/// An API key.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) mask_value: String,
    pub(super) created_at: String,
    pub(super) last_used_at: Option<String>,
    pub(super) last_rolled_at: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) scoped_teams: Vec<u64>,
    pub(super) scoped_organizations: Vec<String>,
    pub(super) expires_at: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct BatchExport {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) destination: ExportDestination,
    pub(super) interval: String,
    pub(super) paused: bool,
    pub(super) created_at: String,
    pub(super) last_updated_at: String,
    pub(super) last_paused_at: Option<String>,
}

/// The destination of a batch export.
#[derive(Deserialize)]
pub(super) struct ExportDestination {
    #[serde(rename = "type")]
    pub(super) service: String,
}

/// The levels of the session on a dashboard or an insight.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Rights {
    user_access_level: String,
    effective_privilege_level: u8,
}

impl Rights {
    /// Whether access rules and restrictions let the session edit.
    pub(super) fn may_edit(&self) -> bool {
        self.is_editor() && self.effective_privilege_level == MAY_EDIT
    }

    /// Whether access rules let the session edit. A restriction may still not.
    pub(super) fn is_editor(&self) -> bool {
        is_editor(&self.user_access_level)
    }
}

#[derive(Deserialize)]
pub(super) struct Dashboard {
    pub(super) id: u64,
    pub(super) name: Option<String>,
    pub(super) description: String,
    pub(super) pinned: bool,
    pub(super) created_at: String,
    pub(super) is_shared: bool,
    pub(super) tags: Vec<String>,
    restriction_level: u8,
    pub(super) created_by: Option<Person>,
    /// Lists leave the tiles out.
    #[serde(default)]
    pub(super) tiles: Vec<Tile>,
    #[serde(flatten)]
    pub(super) rights: Rights,
}

impl Dashboard {
    pub(super) fn name(&self) -> &str {
        dashboard_name(self.name.as_deref())
    }

    pub(super) const fn is_restricted(&self) -> bool {
        is_restricted(self.restriction_level)
    }

    /// Returns the time of creation without its fraction, which compresses badly.
    pub(super) fn created_second(&self) -> String {
        let second = self.created_at.get(..19);
        second.map_or_else(|| self.created_at.clone(), |second| format!("{second}Z"))
    }
}

/// A tile of a dashboard.
#[derive(Deserialize)]
pub(super) struct Tile {
    pub(super) id: u64,
    /// Deleted tiles are listed without it.
    #[serde(default)]
    pub(super) layouts: Value,
    pub(super) color: Option<String>,
    pub(super) insight: Option<TileInsight>,
    pub(super) text: Option<TileText>,
}

/// An insight on a tile. One that the session may not view has only its ids and its level.
#[derive(Deserialize)]
pub(super) struct TileInsight {
    pub(super) id: u64,
    user_access_level: String,
    name: Option<String>,
    derived_name: Option<String>,
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    pub(super) query: Option<Map<String, Value>>,
    #[serde(default)]
    pub(super) filters: Map<String, Value>,
}

impl TileInsight {
    /// Whether the session may not view the insight.
    pub(super) fn is_hidden(&self) -> bool {
        self.user_access_level == "none"
    }

    pub(super) fn name(&self) -> &str {
        insight_name(self.name.as_deref(), self.derived_name.as_deref())
    }
}

/// A text on a tile.
#[derive(Deserialize)]
pub(super) struct TileText {
    pub(super) body: Option<String>,
}

/// Returns the first letter of a name.
pub(super) fn initial(text: &str) -> String {
    text.trim().chars().next().map_or("·".to_owned(), |first| first.to_uppercase().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_without_a_name_are_shown_by_their_address() {
        let person = |first: &str, last: &str| Person {
            first_name: first.to_owned(),
            last_name: last.to_owned(),
            email: "ada@x.example".to_owned(),
        };
        let shown = |first, last| (person(first, last).name(), person(first, last).initials());
        assert_eq!(shown("Ada", " Lovelace "), ("Ada Lovelace".to_owned(), "AL".to_owned()));
        assert_eq!(shown(" ", "éric"), ("éric".to_owned(), "É".to_owned()));
        assert_eq!(shown("", ""), ("ada@x.example".to_owned(), "A".to_owned()));
        assert_eq!(Person::default().initials(), "·");
    }
}
