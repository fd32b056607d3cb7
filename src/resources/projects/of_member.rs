//! What one member may do in the projects that the caller sees, and why.

use crate::resources::members::{self, Membership};
use crate::resources::roles;
use crate::resources::shared::prelude::*;

use super::grants::{self, DecidedBy, GrantLevel};
use super::{Fields, Meta};

output! {
    /// What a member may do in a project, and why.
    pub struct MemberProjectBody as MemberProject {
        /// ID of the project.
        id: ProjectId,
        /// Name of the project.
        name: String,
        /// Whether the project is private: other than admins, only members with access may see it.
        access_control: bool,
        /// The level of the member in the project.
        access_level: GrantLevel,
        /// The rule that decides the level.
        rule: ProjectLevelRule,
        /// ID of the role that the rule names, for `role_rule`.
        role: Option<RoleId>,
        /// Name of the role. Null for a key that may not list roles.
        role_name: Option<String>,
        /// The rule, in words.
        text: String,
    }
}

/// A rule that decides the level of a member in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectLevelRule {
    /// Admins and owners of the organization are admins of every project.
    OrganizationAdmin,
    /// The rule for everyone; without one, everyone is a member of the project.
    ProjectDefault,
    /// A rule on the project names the member.
    MemberRule,
    /// A rule on the project names a role of the member.
    RoleRule,
}

/// The member whose access is listed, and what the response may name.
#[derive(Debug, Clone, Copy)]
pub struct OfMember<'a> {
    /// The user.
    pub user: UserId,
    /// The projects that the caller's key is limited to.
    pub only: Option<&'a [ProjectId]>,
    /// Whether the caller may list members.
    pub sees_members: bool,
    /// Whether the caller may list roles.
    pub sees_roles: bool,
}

/// Lists the projects that the caller may see, ordered by ID, with the level of a member of the organization. Returns
/// the total, and those in `window` as the items of a JSON array. The list is empty for another member if the caller may
/// not list members.
///
/// # Errors
/// 404 if the user is not a member that lists show.
pub fn list(
    tx: &impl Tx,
    caller: &Membership,
    of: OfMember<'_>,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let member = members::find_listed(tx, caller.organization, of.user)?;
    let member = member.ok_or_else(Error::not_found)?;
    if !of.sees_members && of.user != caller.user {
        return Ok((0, Vec::new()));
    }
    let mut items = JsonItems::default();
    let count = super::list(tx, caller, of.only, window, |_, own| {
        items.push(body(tx, &member, own.parse()?, of.sees_roles)?)
    })?;
    Ok((count, items.into_bytes()))
}

fn body(
    tx: &impl Tx,
    member: &Membership,
    project: Fields,
    sees_roles: bool,
) -> Result<MemberProjectBody> {
    let Fields { organization, id, name, access_control, .. } = project;
    let meta = Meta { organization, id, access_control };
    let (access_level, decided_by) = grants::decide(tx, &meta, member)?;
    let (rule, role) = match decided_by {
        DecidedBy::Admin => (ProjectLevelRule::OrganizationAdmin, None),
        DecidedBy::Default => (ProjectLevelRule::ProjectDefault, None),
        DecidedBy::Grant(subject) => match subject.role() {
            Some(role) => (ProjectLevelRule::RoleRule, Some(role)),
            None => (ProjectLevelRule::MemberRule, None),
        },
    };
    let role_name = match role {
        Some(role) if sees_roles => roles::find_name(tx, organization, role)?,
        _ => None,
    };
    let text = text(rule, access_level);
    Ok(MemberProjectBody { id, name, access_control, access_level, rule, role, role_name, text })
}

fn text(rule: ProjectLevelRule, level: GrantLevel) -> String {
    let level = level.as_str();
    match rule {
        ProjectLevelRule::OrganizationAdmin => {
            "Admins and owners of the organization are admins of every project.".to_owned()
        }
        ProjectLevelRule::ProjectDefault if level == GrantLevel::None.as_str() => {
            "The project is private, and no rule gives the member access.".to_owned()
        }
        ProjectLevelRule::ProjectDefault => {
            format!("The project is open to all members, with the level {level}.")
        }
        ProjectLevelRule::MemberRule => {
            format!("A rule on the project gives the member the level {level}.")
        }
        ProjectLevelRule::RoleRule => {
            format!("A rule on the project gives a role of the member the level {level}.")
        }
    }
}
