//! Access controls: rules that give a member, or everyone by default, a level on a project, on one
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
use crate::ids::{MembershipId, OrganizationId};
use crate::patch::Patch;
use crate::resources::members::{self, Membership};
use crate::store::Tx;

pub use input::{NewAccessControl, NewObjectAccessControl, NewResourceAccessControl};
pub use on_objects::{body_of_all, body_of_one, update_all, update_one};
pub use on_project::{body, update};
pub use registration::RECORDS;

/// Returns the member that a rule names; `None` if the rule is a default.
fn find_member(
    tx: &impl Tx,
    organization: OrganizationId,
    member: &Patch<MembershipId>,
    role: &Patch<Uuid>,
) -> Result<Option<Membership>> {
    match (member.clone().value(), role.clone().value()) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "invalid_input",
            "You can not scope an access control to both a member and a role.",
        )),
        (None, Some(role)) => Err(does_not_exist("role", &role)),
        (None, None) => Ok(None),
        (Some(id), None) => members::find_by_id(tx, organization, id)?
            .map(Some)
            .ok_or_else(|| does_not_exist("organization_member", &id.0)),
    }
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
