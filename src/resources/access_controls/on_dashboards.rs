//! Access rules on one dashboard, and on all dashboards of a project. They are stored as [`AccessRule`] records.

use uuid::Uuid;

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, MembershipId, ProjectId};
use crate::input::Parsed;
use crate::json::{Array, WriteJson, WrittenBy};
use crate::patch::Patch;
use crate::resources::access_controls::levels::{self, AccessLevel, DashboardRights};
use crate::resources::members;
use crate::resources::projects::grants::GrantLevel;
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::body::{DashboardAccessControl, DashboardAccessControls, Rule};
use super::rules::{self, AccessRule};
use super::{
    NewDashboardAccessControl, NewResourceAccessControl, RULE_SIZE, find_member, on_project,
};

/// Sets or deletes a rule on one dashboard. Returns the JSON of the rule, or `None` if it was deleted.
/// `rights` are the caller's rights on the dashboard.
///
/// # Errors
/// 403 if the caller may not edit the rules of the dashboard; 400 for an invalid field.
pub fn update_one(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: DashboardId,
    rights: DashboardRights,
    sent: &Parsed<NewDashboardAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    rights.require_manage(runs_project(tx, tenant)?)?;
    let NewDashboardAccessControl { access_level, organization_member, role } = sent.get()?;
    let named = (organization_member, role);
    put(tx, tenant, Some(dashboard), named, *access_level, now)
}

/// Sets or deletes a rule on all dashboards of a project. Returns the JSON of the rule, or `None` if it was
/// deleted.
///
/// # Errors
/// 403 if the caller is not an admin of the organization; 400 for an invalid field.
pub fn update_all(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    sent: &Parsed<NewResourceAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    if !tenant.member.level.is_admin() {
        return Err(Error::denied(
            "Must be an Organization admin to modify project-wide permissions.",
        ));
    }
    let NewResourceAccessControl { access_level, resource: _, organization_member, role } =
        sent.get()?;
    put(tx, tenant, None, (organization_member, role), *access_level, now)
}

fn put(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: Option<DashboardId>,
    (member, role): (&Patch<Uuid>, &Patch<Uuid>),
    level: Option<AccessLevel>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    let member = find_member(tx, tenant.project.organization, member, role)?;
    let user = member.as_ref().map(|member| member.user);
    let Some(level) = level else {
        tx.remove::<AccessRule>(&(tenant.project.id, dashboard, user))?;
        return Ok(None);
    };
    let kept = rules::set(tx, tenant, dashboard, user, level, now)?;
    rule(&kept, member.map(|member| member.id)).to_json(RULE_SIZE).map(Some)
}

/// Returns whether the caller is an admin of the project, by a grant or as an admin of the organization.
fn runs_project(tx: &impl Tx, tenant: &InProject) -> Result<bool> {
    Ok(on_project::level(tx, tenant)? == GrantLevel::Admin)
}

/// Renders the rules on a dashboard with the caller's own access. Rules on members come first, ordered by
/// user; the rule for everyone is last.
///
/// # Errors
/// 403 if the caller may neither view the dashboard nor edit its rules.
pub fn body_of_one(
    tx: &impl Tx,
    tenant: &InProject,
    dashboard: DashboardId,
    rights: DashboardRights,
) -> Result<Vec<u8>> {
    let can_edit = rights.can_manage(runs_project(tx, tenant)?);
    if !can_edit {
        rights.require_view()?;
    }
    let default = rules::default_of_all(tx, tenant.project.id)?;
    let body = DashboardAccessControls {
        access_controls: WrittenBy(&mut |out| write_rules(tx, tenant, Some(dashboard), out)),
        available_access_levels: &AccessLevel::ALL,
        default_access_level: default.unwrap_or(AccessLevel::Editor),
        user_access_level: rights.user_access_level,
        user_can_edit_access_levels: can_edit,
    };
    body.to_json(2 * RULE_SIZE)
}

/// Renders the rules on all dashboards of a project with the caller's own access, in the same order.
pub fn body_of_all(tx: &impl Tx, tenant: &InProject) -> Result<Vec<u8>> {
    let can_edit = tenant.member.level.is_admin();
    let on_all = rules::level_on_all(tx, tenant)?;
    let body = DashboardAccessControls {
        access_controls: WrittenBy(&mut |out| write_rules(tx, tenant, None, out)),
        available_access_levels: &AccessLevel::ALL,
        default_access_level: AccessLevel::Editor,
        user_access_level: levels::default_level(&tenant.member, on_all),
        user_can_edit_access_levels: can_edit,
    };
    body.to_json(2 * RULE_SIZE)
}

/// Appends the rules. Leaves out rules on inactive users, as the list of members does.
fn write_rules(
    tx: &impl Tx,
    tenant: &InProject,
    dashboard: Option<DashboardId>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let prefix: (ProjectId, Option<DashboardId>) = (tenant.project.id, dashboard);
    Array::write(out, |array| {
        tx.scan::<AccessRule, _>(&prefix, Window::all(Order::Ascending), |row| {
            let member = match row.meta.user {
                Some(user) => match members::find_listed(tx, row.meta.organization, user)? {
                    Some(member) => Some(member.id),
                    None => return Ok(()),
                },
                None => None,
            };
            array.push(rule(&row.meta, member))
        })
    })
}

fn rule(rule: &AccessRule, member: Option<MembershipId>) -> DashboardAccessControl {
    DashboardAccessControl {
        access_level: rule.level,
        rule: Rule {
            resource: "dashboard",
            resource_id: rule.dashboard.map(|id| id.to_string()),
            organization_member: member,
            created_at: rule.created_at,
            updated_at: rule.updated_at,
        },
    }
}
