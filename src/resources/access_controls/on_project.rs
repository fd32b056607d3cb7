//! The access controls of a project. A rule is kept as a [`Grant`]. Whether a project is open to every
//! member is not said by a rule but by the project's own `access_control`.

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::MembershipId;
use crate::input::Parsed;
use crate::resources::members;
use crate::resources::projects;
use crate::resources::projects::grants::{self, Grant, GrantLevel};
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::{NewAccessControl, Rules, Shown, find_member, required};

/// Puts a member's rule for a project, or removes it; answers it as it is shown, or none.
///
/// # Errors
/// 403 for those who do not run the project; 400 for a field.
pub fn update(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    sent: &Parsed<NewAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    if level(tx, place)? < GrantLevel::Admin {
        return Err(Error::denied("Must be admin to modify project permissions."));
    }
    let NewAccessControl { access_level, organization_member, role } = sent.get()?;
    let projects::Head { organization, id, .. } = place.project;
    let member = find_member(tx, organization, organization_member, role)?
        .ok_or_else(|| required("organization_member"))?;
    let Some(level) = *access_level else {
        tx.remove::<Grant>(&(organization, id, member.user))?;
        return Ok(None);
    };
    let grant = grants::set(tx, organization, id, member.user, level, now)?;
    shown(&grant, member.id).alone().map(Some)
}

/// What the caller may do in the project: an organization's admins run it; others have what their rule
/// gives them. Who sees it without such a rule is in an open one, where everybody is a member.
pub(super) fn level(tx: &impl Tx, place: &InProject) -> Result<GrantLevel> {
    if place.member.level.administers() {
        return Ok(GrantLevel::Admin);
    }
    let given = grants::find(tx, &place.project, place.member.user)?;
    Ok(given.unwrap_or(GrantLevel::Member))
}

/// The rules of a project by user, and what the caller may do in it and with them. Those of users whom
/// the list of members leaves out are left out too.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn body(tx: &impl Tx, place: &InProject) -> Result<Vec<u8>> {
    let level = level(tx, place)?;
    let private = place.project.access_control;
    let default = if private { GrantLevel::None } else { GrantLevel::Member };
    let rules = Rules {
        available: &GrantLevel::ALL.map(GrantLevel::word),
        default: default.word(),
        user: level.word(),
        edits: level == GrantLevel::Admin,
    };
    let of_project = (place.project.organization, place.project.id);
    rules.body(|items| {
        tx.scan::<Grant, _>(&of_project, Window::all(Order::Ascending), |row| {
            let member = members::find_listed(tx, of_project.0, row.head.user)?;
            member.map_or(Ok(()), |member| items.item(|out| shown(&row.head, member.id).write(out)))
        })
    })
}

fn shown(grant: &Grant, member: MembershipId) -> Shown {
    Shown {
        access_level: grant.level.word(),
        resource: "project",
        resource_id: Some(grant.project.to_string()),
        organization_member: Some(member),
        created_at: grant.created_at,
        updated_at: grant.updated_at,
    }
}
