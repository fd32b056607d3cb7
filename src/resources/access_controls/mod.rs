//! Access controls: rules that give a member, or everyone by default, a level on a project, on one
//! dashboard, or on all dashboards of a project. See `docs/spec/access-controls.md`.

pub mod body;
pub mod http;
mod input;
pub mod levels;
mod on_dashboards;
mod on_project;
mod registration;
pub mod rules;

use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{MembershipId, OrganizationId};
use crate::json::{Array, Object};
use crate::patch::Patch;
use crate::resources::members::{self, Membership};
use crate::store::Tx;
use crate::time::Timestamp;

pub use input::{NewAccessControl, NewDashboardAccessControl, NewResourceAccessControl};
pub use on_dashboards::{body_of_all, body_of_one, update_all, update_one};
pub use on_project::{body, update};
pub use registration::RECORDS;

/// Returns the member that a rule names; `None` if the rule is a default.
fn find_member(
    tx: &impl Tx,
    organization: OrganizationId,
    member: &Patch<Uuid>,
    role: &Patch<Uuid>,
) -> Result<Option<Membership>> {
    match (member.clone().value(), role.clone().value()) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "invalid_input",
            "You can not scope an access control to both a member and a role.",
        )),
        (None, Some(role)) => Err(does_not_exist("role", &role)),
        (None, None) => Ok(None),
        (Some(id), None) => members::find_by_id(tx, organization, MembershipId(id))?
            .map(Some)
            .ok_or_else(|| does_not_exist("organization_member", &id)),
    }
}

fn required(attr: &str) -> Error {
    Error::field(attr, "required", "This field is required.")
}

fn does_not_exist(attr: &str, id: &Uuid) -> Error {
    let detail = format!("Invalid pk \"{id}\" - object does not exist.");
    Error::field(attr, "does_not_exist", detail)
}

/// The parts of a response that surround its rules.
struct RuleList<'r> {
    /// The levels of a rule, lowest first.
    available: &'r [&'static str],
    /// The level of everyone to whom no rule applies.
    default: &'static str,
    /// The caller's level.
    user: &'static str,
    /// Whether the caller may edit the rules.
    can_edit: bool,
}

impl RuleList<'_> {
    /// Renders the response, with the rules that `write` appends.
    fn body(&self, write: impl FnOnce(&mut Array<'_>) -> Result<()>) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(2 * RULE_SIZE);
        Object::begin(&mut out)
            .with("access_controls", |out| {
                let mut items = Array::begin(out);
                write(&mut items)?;
                items.end();
                Ok(())
            })?
            .field("available_access_levels", self.available)?
            .field("default_access_level", self.default)?
            .field("user_access_level", self.user)?
            .field("user_can_edit_access_levels", &self.can_edit)?
            .end();
        Ok(out)
    }
}

/// Approximate size of a rule in a response, in bytes.
const RULE_SIZE: usize = 256;

/// The fields of a rule in a response.
struct RuleView {
    access_level: &'static str,
    resource: &'static str,
    resource_id: Option<String>,
    organization_member: Option<MembershipId>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl RuleView {
    /// Appends the rule. `role` and `created_by` are always null.
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        Object::begin(out)
            .field("access_level", self.access_level)?
            .field("resource", self.resource)?
            .field("resource_id", &self.resource_id)?
            .field("organization_member", &self.organization_member)?
            .raw("role", b"null")
            .raw("created_by", b"null")
            .field("created_at", &self.created_at)?
            .field("updated_at", &self.updated_at)?
            .end();
        Ok(())
    }

    /// Renders the rule alone.
    fn to_json(&self) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(RULE_SIZE);
        self.write(&mut out)?;
        Ok(out)
    }
}
