//! Access controls: rules that give a member, the members of a role, or everyone by default, a level on a project, on one
//! object, or on all objects of a kind in a project. See `docs/spec/access-controls.md`.

pub mod api;
pub mod http;
pub mod levels;
mod on_objects;
mod on_project;
pub mod precedence;
pub mod rules;
pub mod shared;

use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{MembershipId, OrganizationId, RoleId};
use crate::patch::Patch;
use crate::resources::shared::access_subject::Subject;
use crate::resources::{members, roles};
use crate::store::Tx;

use api::{KindField, Kinds, LevelField, OnObjects};
pub use api::{NewAccessControl, NewObjectAccessControl, NewResourceAccessControl, RECORDS};
pub use on_objects::{
    body_of_all, body_of_one, require_read, runs_project, update_all, update_one,
};
pub use on_project::{body, update};

/// The subject of a rule, and what responses show of it: a membership, a role, or neither for everyone.
#[derive(Debug, Clone, Copy)]
struct ListedSubject {
    subject: Subject,
    member: Option<MembershipId>,
}

/// Returns the subject that a request names.
///
/// # Errors
/// 400 if it names both a member and a role, or one that the organization does not have.
fn find_subject(
    tx: &impl Tx,
    organization: OrganizationId,
    member: &Patch<MembershipId>,
    role: &Patch<RoleId>,
) -> Result<ListedSubject> {
    let unnamed = |subject| ListedSubject { subject, member: None };
    match (member.clone().value(), role.clone().value()) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "invalid_input",
            "You can not scope an access control to both a member and a role.",
        )),
        (None, None) => Ok(unnamed(Subject::Everyone)),
        (None, Some(role)) if roles::exists(tx, organization, role)? => {
            Ok(unnamed(Subject::Role(role)))
        }
        (None, Some(role)) => Err(does_not_exist("role", &role.0)),
        (Some(id), None) => match members::find_by_id(tx, organization, id)? {
            Some(member) => {
                Ok(ListedSubject { subject: Subject::User(member.user), member: Some(id) })
            }
            None => Err(does_not_exist("organization_member", &id.0)),
        },
    }
}

/// Returns the subject of a rule for a list; `None` if lists omit the rule. They omit rules for removed roles, and rules
/// for members that the list of members omits.
fn listed_subject(
    tx: &impl Tx,
    organization: OrganizationId,
    subject: Subject,
) -> Result<Option<ListedSubject>> {
    let (is_listed, member) = match subject {
        Subject::Everyone => (true, None),
        Subject::Role(role) => (roles::exists(tx, organization, role)?, None),
        Subject::User(user) => {
            let member = members::find_listed(tx, organization, user)?.map(|member| member.id);
            (member.is_some(), member)
        }
    };
    Ok(is_listed.then_some(ListedSubject { subject, member }))
}

fn required(attr: &str) -> Error {
    Error::field(attr, "required", "This field is required.")
}

fn does_not_exist(attr: &str, id: &Uuid) -> Error {
    let detail = format!("Invalid pk \"{id}\" - object does not exist.");
    Error::field(attr, "does_not_exist", detail)
}

/// Approximate size of a rule in a response, in bytes.
const RULE_SIZE: usize = 256;
