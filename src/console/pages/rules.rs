//! Access rules and their subjects: members, roles and everyone.

use std::collections::HashMap;

use askama::Template;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::console::form::Choice;
use crate::console::list::List;
use crate::console::person::Person;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The maximum number of members, and of roles, that a form offers and that a list of rules names.
const MAX_SUBJECTS: usize = 500;

/// An access rule, as the API describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Rule {
    pub(super) access_level: String,
    pub(super) resource: String,
    pub(super) organization_member: Option<String>,
    pub(super) role: Option<String>,
}

impl Rule {
    /// Returns the subject of the rule, as a form sends it; empty for everyone.
    pub(super) fn subject(&self) -> String {
        match (&self.organization_member, &self.role) {
            (Some(member), _) => format!("member {member}"),
            (None, Some(role)) => format!("role {role}"),
            (None, None) => String::new(),
        }
    }
}

/// The rules on a project, on all objects of its kinds, or on one object.
#[derive(Debug, Deserialize)]
pub(super) struct Rules {
    pub(super) access_controls: Vec<Rule>,
    pub(super) default_access_level: String,
    pub(super) user_can_edit_access_levels: bool,
}

#[derive(Deserialize)]
struct ProjectFields {
    organization: String,
}

#[derive(Deserialize)]
struct Member {
    id: String,
    user: Person,
}

#[derive(Deserialize)]
struct Role {
    id: String,
    name: String,
}

/// The members and the roles of an organization, as far as the session may list them.
pub(super) struct Subjects {
    members: Vec<(String, String)>,
    roles: Vec<(String, String)>,
    names: HashMap<String, String>,
}

impl Subjects {
    /// Loads the first members and roles of the organization of a project.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn load(request: &SignedIn, project: &str) -> Result<Self> {
        let api = &request.api;
        let found =
            api.get_if_allowed::<ProjectFields>(&format!("/api/projects/{project}/")).await?;
        let (mut members, mut roles) = (Vec::new(), Vec::new());
        if let Some(ProjectFields { organization }) = found {
            let base = format!("/api/organizations/{organization}");
            let path = format!("{base}/members/?limit={MAX_SUBJECTS}");
            if let Some(found) = api.get_if_allowed::<List<Member>>(&path).await? {
                members = found.results.into_iter().map(|one| (one.id, one.user.name())).collect();
            }
            let path = format!("{base}/roles/?limit={MAX_SUBJECTS}&basic=true");
            if let Some(found) = api.get_if_allowed::<List<Role>>(&path).await? {
                roles = found.results.into_iter().map(|one| (one.id, one.name)).collect();
            }
        }
        members.sort_by_key(|(_, name)| name.to_lowercase());
        let names = members.iter().chain(&roles).cloned().collect();
        Ok(Self { members, roles, names })
    }

    /// Returns the name of the subject of a rule.
    pub(super) fn name(&self, rule: &Rule) -> String {
        let named = |id: &String, kind: &str| {
            let name = self.names.get(id).unwrap_or(id);
            format!("{kind}{name}")
        };
        match (&rule.organization_member, &rule.role) {
            (Some(member), _) => named(member, ""),
            (None, Some(role)) => named(role, "Role "),
            (None, None) => "Everyone".to_owned(),
        }
    }

    /// Returns the members as choices of a form.
    pub(super) fn members(&self) -> Vec<Choice> {
        choices("No member", &self.members)
    }

    /// Returns the roles as choices of a form.
    pub(super) fn roles(&self) -> Vec<Choice> {
        choices("No role", &self.roles)
    }
}

fn choices(none: &str, named: &[(String, String)]) -> Vec<Choice> {
    let all = named.iter().map(|(id, name)| Choice::new(id.as_str(), name.as_str()));
    [Choice::new("", none)].into_iter().chain(all).collect()
}

/// Rules as a table, with a button for each that removes it.
#[derive(Template)]
#[template(path = "console/pages/rules.html")]
pub(super) struct RuleTable {
    rows: Vec<RuleRow>,
    /// The URL that the buttons send the form to, if the session may remove rules.
    action: Option<String>,
}

/// A rule in the table.
struct RuleRow {
    name: String,
    level: String,
    subject: String,
}

impl RuleTable {
    pub(super) fn new(rules: &[Rule], subjects: &Subjects, action: Option<String>) -> Self {
        let rows = rules.iter().map(|rule| RuleRow {
            name: subjects.name(rule),
            level: rule.access_level.clone(),
            subject: rule.subject(),
        });
        Self { rows: rows.collect(), action }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Returns the body of a request that removes the rule of a subject.
pub(super) fn removed_rule(subject: &str) -> Map<String, Value> {
    let mut body = Map::new();
    match subject.split_once(' ') {
        Some(("member", id)) => body.insert("organization_member".to_owned(), id.into()),
        Some(("role", id)) => body.insert("role".to_owned(), id.into()),
        _ => None,
    };
    body.insert("access_level".to_owned(), Value::Null);
    body
}
