//! The access controls of a dashboard, and of all dashboards of a project. A rule is a [`Rule`].

use uuid::Uuid;

use crate::access::InProject;
use crate::access::levels::{self, AccessLevel, Rights};
use crate::error::{Error, Result};
use crate::ids::{DashboardId, MembershipId, ProjectId};
use crate::input::Parsed;
use crate::json::Array;
use crate::patch::Patch;
use crate::resources::members;
use crate::resources::projects::grants::GrantLevel;
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::rules::{self, Rule};
use super::{
    NewDashboardAccessControl, NewResourceAccessControl, Rules, Shown, find_member, on_project,
};

/// Puts a rule on a dashboard with which the caller has these rights, or removes it; answers it as it is
/// shown, or none.
///
/// # Errors
/// 403 for those who do not manage the dashboard; 400 for a field.
pub fn update_one(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: DashboardId,
    rights: Rights,
    sent: &Parsed<NewDashboardAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    rights.require_manage(runs_project(tx, place)?)?;
    let NewDashboardAccessControl { access_level, organization_member, role } = sent.get()?;
    let named = (organization_member, role);
    put(tx, place, Some(dashboard), named, *access_level, now)
}

/// Puts a rule on all dashboards of a project, or removes it; answers it as it is shown, or none.
///
/// # Errors
/// 403 for those who do not administer the organization; 400 for a field.
pub fn update_all(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    sent: &Parsed<NewResourceAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    if !place.member.level.administers() {
        return Err(Error::denied(
            "Must be an Organization admin to modify project-wide permissions.",
        ));
    }
    let NewResourceAccessControl { access_level, resource: _, organization_member, role } =
        sent.get()?;
    put(tx, place, None, (organization_member, role), *access_level, now)
}

fn put(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: Option<DashboardId>,
    (member, role): (&Patch<Uuid>, &Patch<Uuid>),
    level: Option<AccessLevel>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    let member = find_member(tx, place.project.organization, member, role)?;
    let user = member.as_ref().map(|member| member.user);
    let Some(level) = level else {
        tx.remove::<Rule>(&(place.project.id, dashboard, user))?;
        return Ok(None);
    };
    let kept = rules::set(tx, place, dashboard, user, level, now)?;
    shown(&kept, member.map(|member| member.id)).alone().map(Some)
}

/// Whether the caller runs the project: by a grant, or as an admin of the organization.
fn runs_project(tx: &impl Tx, place: &InProject) -> Result<bool> {
    Ok(on_project::level(tx, place)? == GrantLevel::Admin)
}

/// The rules on a dashboard, those about members by user and then the one for everyone; and what the
/// caller may do with it and them.
///
/// # Errors
/// 403 for those who neither see the dashboard nor make its rules.
pub fn body_of_one(
    tx: &impl Tx,
    place: &InProject,
    dashboard: DashboardId,
    rights: Rights,
) -> Result<Vec<u8>> {
    let edits = rights.can_manage(runs_project(tx, place)?);
    if !edits {
        rights.require_view()?;
    }
    let default = rules::default_of_all(tx, place.project.id)?;
    let rules = Rules {
        available: &AccessLevel::ALL.map(AccessLevel::word),
        default: default.unwrap_or(AccessLevel::Editor).word(),
        user: rights.user_access_level.word(),
        edits,
    };
    rules.body(|items| write_rules(tx, place, Some(dashboard), items))
}

/// The rules on all dashboards of a project, in the same order; and what the caller may do by them and
/// with them.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn body_of_all(tx: &impl Tx, place: &InProject) -> Result<Vec<u8>> {
    let edits = place.member.level.administers();
    let rules = Rules {
        available: &AccessLevel::ALL.map(AccessLevel::word),
        default: AccessLevel::Editor.word(),
        user: levels::on_all(&place.member, rules::on_all(tx, place)?).word(),
        edits,
    };
    rules.body(|items| write_rules(tx, place, None, items))
}

/// Appends the rules, without those about users whom the list of members leaves out.
fn write_rules(
    tx: &impl Tx,
    place: &InProject,
    dashboard: Option<DashboardId>,
    items: &mut Array<'_>,
) -> Result<()> {
    let prefix: (ProjectId, Option<DashboardId>) = (place.project.id, dashboard);
    tx.scan::<Rule, _>(&prefix, Window::all(Order::Ascending), |row| {
        let member = match row.head.user {
            Some(user) => match members::find_listed(tx, row.head.organization, user)? {
                Some(member) => Some(member.id),
                None => return Ok(()),
            },
            None => None,
        };
        items.item(|out| shown(&row.head, member).write(out))
    })
}

fn shown(rule: &Rule, member: Option<MembershipId>) -> Shown {
    Shown {
        access_level: rule.level.word(),
        resource: "dashboard",
        resource_id: rule.dashboard.map(|id| id.to_string()),
        organization_member: member,
        created_at: rule.created_at,
        updated_at: rule.updated_at,
    }
}
