//! Access controls: which member has which level on a project by name (decisions §4; facts-dashboards §9).
//!
//! A rule is kept as a [`Grant`]. Whether a project is open to every member is not said by a rule but by
//! the project's own `access_control`.

pub mod http;
pub mod rules;

use serde_json::Value;

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::{MembershipId, OrganizationId};
use crate::input;
use crate::input::{Choice, Choices, Field, Nullable, Schema, UuidField};
use crate::json::{Array, Object};
use crate::patch::Patch;
use crate::resources::members::{self, Membership};
use crate::resources::projects;
use crate::resources::projects::grants::{self, Grant, GrantLevel};
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

/// The levels that a rule takes.
struct Levels;

impl Choices for Levels {
    type Value = GrantLevel;
    const ALL: &'static [GrantLevel] = &GrantLevel::ALL;
}

impl From<GrantLevel> for Value {
    fn from(level: GrantLevel) -> Self {
        level.word().into()
    }
}

/// `access_level`: a level, or null for no rule at all; it has to be sent, and has a refusal of its own
/// (facts-dashboards §9).
pub struct AccessLevel;

impl Field for AccessLevel {
    type Out = Option<GrantLevel>;

    const REQUIRED: bool = true;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        match Nullable::<Choice<Levels>>::take(name, value) {
            Ok(Patch::Value(level)) => Ok(Some(level)),
            Ok(Patch::Null) => Ok(None),
            Ok(Patch::Absent) => Err(required(name)),
            Err(_) => {
                let levels = GrantLevel::ALL.map(GrantLevel::word).join(", ");
                let detail = format!("Invalid access level. Must be one of: {levels}");
                Err(Error::field(name, "invalid_input", detail))
            }
        }
    }

    fn property() -> Schema {
        Nullable::<Choice<Levels>>::property()
    }
}

input! {
    /// One rule to put or, where the level is null, to remove.
    pub struct NewAccessControl {
        /// What the member may do in the project; null for no rule of the member's own.
        access_level: AccessLevel,
        /// The membership it is about, which is not the user's id.
        organization_member: Nullable<UuidField>,
        /// Roles do not exist: null.
        role: Nullable<UuidField>,
    }
}

/// Puts a member's rule for a project, or removes it; answers it as it is shown, or none.
///
/// # Errors
/// 403 for those who do not run the project; 400 for a field.
pub fn update(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    sent: &input::Parsed<NewAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    if level(tx, place)? < GrantLevel::Admin {
        return Err(Error::denied("Must be admin to modify project permissions."));
    }
    let sent = sent.get()?;
    let projects::Head { organization, id, .. } = place.project;
    let member = get_member(tx, organization, sent)?;
    let Some(level) = sent.access_level else {
        tx.remove::<Grant>(&(organization, id, member.user))?;
        return Ok(None);
    };
    let grant = grants::set(tx, organization, id, member.user, level, now)?;
    let mut out = Vec::with_capacity(RULE);
    write_rule(&grant, member.id, &mut out)?;
    Ok(Some(out))
}

/// What the caller may do in the project: an organization's admins run it; others have what their rule
/// gives them. Who sees it without such a rule is in an open one, where everybody is a member.
fn level(tx: &impl Tx, place: &InProject) -> Result<GrantLevel> {
    if place.member.level.administers() {
        return Ok(GrantLevel::Admin);
    }
    let given = grants::find(tx, &place.project, place.member.user)?;
    Ok(given.unwrap_or(GrantLevel::Member))
}

/// The member whom a rule is to be about.
fn get_member(
    tx: &impl Tx,
    organization: OrganizationId,
    sent: &NewAccessControl,
) -> Result<Membership> {
    let (member, role) = (sent.organization_member.clone().value(), sent.role.clone().value());
    match (member, role) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "invalid_input",
            "You can not scope an access control to both a member and a role.",
        )),
        (None, Some(role)) => Err(does_not_exist("role", &role)),
        (None, None) => Err(required("organization_member")),
        (Some(id), None) => members::find_by_id(tx, organization, MembershipId(id))?
            .ok_or_else(|| does_not_exist("organization_member", &id)),
    }
}

fn required(attr: &str) -> Error {
    Error::field(attr, "required", "This field is required.")
}

fn does_not_exist(attr: &str, id: &uuid::Uuid) -> Error {
    let detail = format!("Invalid pk \"{id}\" - object does not exist.");
    Error::field(attr, "does_not_exist", detail)
}

/// The rules of a project, and what the caller may do in it and with them.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn body(tx: &impl Tx, place: &InProject) -> Result<Vec<u8>> {
    let level = level(tx, place)?;
    let private = place.project.access_control;
    let default = if private { GrantLevel::None } else { GrantLevel::Member };
    let mut out = Vec::with_capacity(2 * RULE);
    Object::begin(&mut out)
        .with("access_controls", |out| write_rules(tx, &place.project, out))?
        .field("available_access_levels", &GrantLevel::ALL)?
        .field("default_access_level", &default)?
        .field("user_access_level", &level)?
        .field("user_can_edit_access_levels", &(level == GrantLevel::Admin))?
        .end();
    Ok(out)
}

/// Appends the rules by user, without those of users whom the list of members leaves out.
fn write_rules(tx: &impl Tx, project: &projects::Head, out: &mut Vec<u8>) -> Result<()> {
    let mut rules = Array::begin(out);
    let of_project = (project.organization, project.id);
    tx.scan::<Grant, _>(&of_project, Window::all(Order::Ascending), |row| {
        let member = members::find_listed(tx, project.organization, row.head.user)?;
        member.map_or(Ok(()), |member| rules.item(|out| write_rule(&row.head, member.id, out)))
    })?;
    rules.end();
    Ok(())
}

/// About what one rule takes, in bytes.
const RULE: usize = 256;

fn write_rule(grant: &Grant, member: MembershipId, out: &mut Vec<u8>) -> Result<()> {
    Object::begin(out)
        .field("access_level", &grant.level)?
        .raw("resource", b"\"project\"")
        .field("resource_id", &grant.project.to_string())?
        .field("organization_member", &member)?
        .raw("role", b"null")
        .raw("created_by", b"null")
        .field("created_at", &grant.created_at)?
        .field("updated_at", &grant.updated_at)?
        .end();
    Ok(())
}
