//! Access rules on a project. They are stored as [`Grant`] records. Whether the project is private is not a
//! rule, but its field `access_control`.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::MembershipId;
use crate::input::Parsed;
use crate::resources::members;
use crate::resources::projects;
use crate::resources::projects::grants::{self, Grant, GrantLevel};
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::{NewAccessControl, RuleList, RuleView, find_member, required};

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
    let member = find_member(tx, organization, organization_member, role)?
        .ok_or_else(|| required("organization_member"))?;
    let Some(level) = *access_level else {
        tx.remove::<Grant>(&(organization, id, member.user))?;
        return Ok(None);
    };
    let grant = grants::set(tx, organization, id, member.user, level, now)?;
    rule_view(&grant, member.id).to_json().map(Some)
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
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn body(tx: &impl Tx, tenant: &InProject) -> Result<Vec<u8>> {
    let level = level(tx, tenant)?;
    let private = tenant.project.access_control;
    let default = if private { GrantLevel::None } else { GrantLevel::Member };
    let rules = RuleList {
        available: &GrantLevel::ALL.map(GrantLevel::as_str),
        default: default.as_str(),
        user: level.as_str(),
        can_edit: level == GrantLevel::Admin,
    };
    let of_project = (tenant.project.organization, tenant.project.id);
    rules.body(|items| {
        tx.scan::<Grant, _>(&of_project, Window::all(Order::Ascending), |row| {
            let member = members::find_listed(tx, of_project.0, row.meta.user)?;
            member.map_or(Ok(()), |member| {
                items.item(|out| rule_view(&row.meta, member.id).write(out))
            })
        })
    })
}

fn rule_view(grant: &Grant, member: MembershipId) -> RuleView {
    RuleView {
        access_level: grant.level.as_str(),
        resource: "project",
        resource_id: Some(grant.project.to_string()),
        organization_member: Some(member),
        created_at: grant.created_at,
        updated_at: grant.updated_at,
    }
}
