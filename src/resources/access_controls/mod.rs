//! Access controls: rules that give a member, the members of a role, or everyone by default, a level on a project, on one
//! object, or on all objects of a kind in a project. See `docs/spec/access-controls.md`.

pub mod body;
pub mod http;
mod input;
pub mod levels;
mod on_objects;
mod on_project;
mod registration;
pub mod rules;

use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{MembershipId, OrganizationId, RoleId};
use crate::patch::Patch;
use crate::resources::access_subject::Subject;
use crate::resources::{members, roles};
use crate::store::Tx;

pub use input::{NewAccessControl, NewObjectAccessControl, NewResourceAccessControl};
pub use on_objects::{body_of_all, body_of_one, update_all, update_one};
pub use on_project::{body, update};
pub use registration::RECORDS;

/// Returns the subject of a rule, and the membership if that is a member.
fn find_subject(
    tx: &impl Tx,
    organization: OrganizationId,
    member: &Patch<MembershipId>,
    role: &Patch<RoleId>,
) -> Result<(Subject, Option<MembershipId>)> {
    match (member.clone().value(), role.clone().value()) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "invalid_input",
            "You can not scope an access control to both a member and a role.",
        )),
        (None, None) => Ok((Subject::Everyone, None)),
        (None, Some(role)) if roles::exists(tx, organization, role)? => {
            Ok((Subject::Role(role), None))
        }
        (None, Some(role)) => Err(does_not_exist("role", &role.0)),
        (Some(id), None) => match members::find_by_id(tx, organization, id)? {
            Some(member) => Ok((Subject::User(member.user), Some(id))),
            None => Err(does_not_exist("organization_member", &id.0)),
        },
    }
}

/// Returns whether lists show a rule for this subject, and with which membership. They omit rules for removed roles, and
/// rules for members that the list of members omits.
fn listed_subject(
    tx: &impl Tx,
    organization: OrganizationId,
    subject: Subject,
) -> Result<Option<Option<MembershipId>>> {
    Ok(match subject {
        Subject::Everyone => Some(None),
        Subject::Role(role) => roles::exists(tx, organization, role)?.then_some(None),
        Subject::User(user) => {
            members::find_listed(tx, organization, user)?.map(|member| Some(member.id))
        }
    })
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
