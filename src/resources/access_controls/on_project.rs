//! Access rules on a project. They are stored as [`Grant`] records. Whether the project is private is not a
//! rule, but its field `access_control`.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::MembershipId;
use crate::input::Parsed;
use crate::json::{Array, WriteJson, WrittenBy};
use crate::resources::access_subject::Subject;
use crate::resources::members;
use crate::resources::projects;
use crate::resources::projects::grants::{self, Grant, GrantLevel};
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::body::{ProjectAccessControl, ProjectAccessControls, Rule};
use super::{NewAccessControl, RULE_SIZE, find_subject, required};

/// Sets or deletes a member's rule on a project. Returns the JSON of the rule, or `None` if it was deleted.
///
/// # Errors
/// 403 if the caller is not an admin of the project; 400 for an invalid field.
pub fn update(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    sent: &Parsed<NewAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    if level(tx, tenant)? < GrantLevel::Admin {
        return Err(Error::denied("Must be admin to modify project permissions."));
    }
    let NewAccessControl { access_level, organization_member, role } = sent.get()?;
    let projects::Meta { organization, id, .. } = tenant.project;
    let (Subject::User(user), Some(member)) =
        find_subject(tx, organization, organization_member, role)?
    else {
        return Err(required("organization_member"));
    };
    let Some(level) = *access_level else {
        tx.remove::<Grant>(&(organization, id, user))?;
        return Ok(None);
    };
    let grant = grants::set(tx, organization, id, user, level, now)?;
    rule(&grant, member).to_json(RULE_SIZE).map(Some)
}

/// Returns the caller's level in the project: admin for admins of the organization; otherwise the level of
/// the caller's grant, or member.
pub(super) fn level(tx: &impl Tx, tenant: &InProject) -> Result<GrantLevel> {
    if tenant.member.level.is_admin() {
        return Ok(GrantLevel::Admin);
    }
    let given = grants::find(tx, &tenant.project, tenant.member.user)?;
    Ok(given.unwrap_or(GrantLevel::Member))
}

/// Renders the rules on a project, ordered by user, with the caller's own access. Leaves out rules on
/// inactive users, as the list of members does.
pub fn body(tx: &impl Tx, tenant: &InProject) -> Result<Vec<u8>> {
    let level = level(tx, tenant)?;
    let private = tenant.project.access_control;
    let of_project = (tenant.project.organization, tenant.project.id);
    let mut rules = |out: &mut Vec<u8>| {
        Array::write(out, |array| {
            tx.scan::<Grant, _>(&of_project, Window::all(Order::Ascending), |row| {
                match members::find_listed(tx, of_project.0, row.meta.user)? {
                    Some(member) => array.push(rule(&row.meta, member.id)),
                    None => Ok(()),
                }
            })
        })
    };
    let body = ProjectAccessControls {
        access_controls: WrittenBy(&mut rules),
        available_access_levels: &GrantLevel::ALL,
        default_access_level: if private { GrantLevel::None } else { GrantLevel::Member },
        user_access_level: level,
        user_can_edit_access_levels: level == GrantLevel::Admin,
    };
    body.to_json(2 * RULE_SIZE)
}

fn rule(grant: &Grant, member: MembershipId) -> ProjectAccessControl {
    ProjectAccessControl {
        access_level: grant.level,
        rule: Rule {
            resource: "project",
            resource_id: Some(grant.project.to_string()),
            organization_member: Some(member),
            role: None,
            created_at: grant.created_at,
            updated_at: grant.updated_at,
        },
    }
}
