//! Access rules and their subjects: members, roles and everyone.

mod subjects;
mod table;

use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) use subjects::Subjects;
pub(super) use table::RuleTable;

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
