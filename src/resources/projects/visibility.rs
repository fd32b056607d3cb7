//! Which projects a user may see. Every member sees open projects; admins, and members with a grant for themselves or for
//! one of their roles, see private ones. And what one member may do in the projects that the caller sees, and why.

use std::collections::{BTreeSet, HashSet};

use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::roles;
use crate::resources::shared::prelude::*;
use crate::resources::users;

use super::grants::{self, DecidedBy, GrantLevel};
use super::{Fields, Meta, PRIVATE_PROJECTS, Project};

/// Returns whether a member may see a project.
pub fn is_visible(tx: &dyn Raw, member: &Membership, project: &Meta) -> Result<bool> {
    if !project.access_control || member.level.is_admin() {
        return Ok(true);
    }
    Ok(grants::given(tx, project, member)?.is_some())
}

/// Returns a project of the member's organization, if it exists and the member may see it.
pub fn find_visible(tx: &dyn Raw, member: &Membership, id: ProjectId) -> Result<Option<Meta>> {
    match tx.meta::<Project>(&(member.organization, id))? {
        Some(project) if is_visible(tx, member, &project)? => Ok(Some(project)),
        _ => Ok(None),
    }
}

/// Returns the private projects of an organization that a member may not see.
pub fn hidden_projects(tx: &dyn Raw, member: &Membership) -> Result<HashSet<ProjectId>> {
    if member.level.is_admin() {
        return Ok(HashSet::new());
    }
    let private = tx.keys(&PRIVATE_PROJECTS, &member.organization, usize::MAX)?;
    if private.is_empty() {
        return Ok(HashSet::new());
    }
    let granted = grants::of_member(tx, member.organization, member.user)?;
    Ok(private.into_iter().map(|(_, id)| id).filter(|id| !granted.contains(id)).collect())
}

/// Lists the projects of an organization that a member may see, ordered by ID. If `only` is set, lists only
/// those projects.
///
/// Returns their total count, and passes the summary JSON of those in `window` to `show`.
pub fn list(
    tx: &dyn Raw,
    member: &Membership,
    only: Option<&[ProjectId]>,
    window: Window,
    show: &mut dyn FnMut(ProjectId, JsonText<'_, Fields>) -> Result<()>,
) -> Result<u64> {
    let hidden = hidden_projects(tx, member)?;
    let organization = member.organization;
    if let Some(only) = only {
        return list_named(tx, organization, only, &hidden, window, show);
    }
    let count = tx.count::<Project>(&organization)?.saturating_sub(hidden.len() as u64);
    if !window.begins_within(count) {
        return Ok(count);
    }
    if hidden.is_empty() {
        tx.scan::<Project, _>(&organization, window, |row| show(row.meta.id, row.json()))?;
    } else {
        let keep = |meta: &Meta| !hidden.contains(&meta.id);
        tx.scan_where::<Project, _>(&organization, window, keep, |row| {
            show(row.meta.id, row.json())
        })?;
    }
    Ok(count)
}

/// Like [`list`], for a key that is limited to some projects.
fn list_named(
    tx: &dyn Raw,
    organization: OrganizationId,
    only: &[ProjectId],
    hidden: &HashSet<ProjectId>,
    window: Window,
    show: &mut dyn FnMut(ProjectId, JsonText<'_, Fields>) -> Result<()>,
) -> Result<u64> {
    let named: BTreeSet<&ProjectId> = only.iter().filter(|id| !hidden.contains(id)).collect();
    let mut count = 0;
    for id in named {
        let found = tx.view::<Project, _>(&(organization, *id), |row| {
            if window.shows(count) { show(*id, row.json()) } else { Ok(()) }
        })?;
        count += usize::from(found.is_some());
    }
    Ok(count as u64)
}

/// Returns the projects that a user with these memberships may see, ordered by ID. If `only` is set,
/// returns only those projects.
pub fn list_visible(
    tx: &dyn Raw,
    memberships: &[Membership],
    only: Option<&[ProjectId]>,
) -> Result<Vec<(OrganizationId, ProjectId)>> {
    let mut found = Vec::new();
    for member in memberships {
        list(tx, member, only, Window::all(Order::Ascending), &mut |id, _| {
            found.push((member.organization, id));
            Ok(())
        })?;
    }
    found.sort_by_key(|(_, id)| *id);
    Ok(found)
}

/// Returns the project that `@current` stands for: the user's current project if they may see it, otherwise
/// the first project of the current organization that they may see.
///
/// With a key that is limited to projects, it is one of these.
pub fn current_project(
    tx: &dyn Raw,
    user: &users::Meta,
    member: Option<&Membership>,
    only: Option<&[ProjectId]>,
) -> Result<Option<Meta>> {
    let named = |id| only.is_none_or(|only| only.contains(&id));
    if let (Some(member), Some(chosen)) = (member, user.current_project)
        && named(chosen)
        && let Some(project) = find_visible(tx, member, chosen)?
    {
        return Ok(Some(project));
    }
    let key = match (only, member) {
        (Some(only), _) => first_of(tx, user, only)?,
        (None, Some(member)) => {
            let mut first = None;
            let window = Window { offset: 0, limit: 1, order: Order::Ascending };
            list(tx, member, None, window, &mut |id, _| {
                first = Some((member.organization, id));
                Ok(())
            })?;
            first
        }
        (None, None) => None,
    };
    key.map_or(Ok(None), |key| tx.meta::<Project>(&key))
}

/// Returns the first of these projects, by ID, that the user may see.
fn first_of(
    tx: &dyn Raw,
    user: &users::Meta,
    only: &[ProjectId],
) -> Result<Option<(OrganizationId, ProjectId)>> {
    let only: BTreeSet<&ProjectId> = only.iter().collect();
    for id in only {
        let Some(project) = super::find_by_id(tx, *id)? else { continue };
        let organization = project.organization;
        let is_there = tx.exists::<Organization>(&organization)?;
        if let Some(member) = members::find(tx, organization, user.id)?.filter(|_| is_there)
            && is_visible(tx, &member, &project)?
        {
            return Ok(Some((organization, *id)));
        }
    }
    Ok(None)
}

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

/// What a response to the caller may name. It names other members and roles only to a key that may list them.
#[derive(Debug, Clone, Copy)]
pub struct NameVisibility {
    /// Whether the key may list members.
    pub other_members: bool,
    /// Whether the key may list roles.
    pub roles: bool,
}

/// Lists the projects that the caller may see, ordered by ID, with the level of a member of the organization. If `only` is
/// set, lists only those projects. Returns the total, and those in `window` as the items of a JSON array. The list is
/// empty for another member if the caller may not list members.
///
/// # Errors
/// 404 if the user is not a member that lists show.
pub fn list_of_member(
    tx: &dyn Raw,
    caller: &Membership,
    user: UserId,
    only: Option<&[ProjectId]>,
    visibility: NameVisibility,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let member = members::find_listed(tx, caller.organization, user)?;
    let member = member.ok_or_else(Error::not_found)?;
    if !visibility.other_members && user != caller.user {
        return Ok((0, Vec::new()));
    }
    let mut items = JsonItems::default();
    let count = list(tx, caller, only, window, &mut |_, own| {
        items.push(body(tx, &member, own.parse()?, visibility.roles)?)
    })?;
    Ok((count, items.into_bytes()))
}

fn body(
    tx: &dyn Raw,
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
