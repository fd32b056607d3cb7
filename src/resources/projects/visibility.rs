//! Which projects a user may see. Every member sees open projects; admins, and members with a grant for themselves or for
//! one of their roles, see private ones.

use std::collections::{BTreeSet, HashSet};

use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::shared::prelude::*;
use crate::resources::users;

use super::{Fields, Meta, PRIVATE_PROJECTS, Project, grants};

/// Returns whether a member may see a project.
pub fn is_visible(tx: &impl Tx, member: &Membership, project: &Meta) -> Result<bool> {
    if !project.access_control || member.level.is_admin() {
        return Ok(true);
    }
    Ok(grants::given(tx, project, member)?.is_some())
}

/// Returns the private projects of an organization that a member may not see.
pub fn hidden_projects(tx: &impl Tx, member: &Membership) -> Result<HashSet<ProjectId>> {
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
    tx: &impl Tx,
    member: &Membership,
    only: Option<&[ProjectId]>,
    window: Window,
    mut show: impl FnMut(ProjectId, JsonText<'_, Fields>) -> Result<()>,
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
    tx: &impl Tx,
    organization: OrganizationId,
    only: &[ProjectId],
    hidden: &HashSet<ProjectId>,
    window: Window,
    mut show: impl FnMut(ProjectId, JsonText<'_, Fields>) -> Result<()>,
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
    tx: &impl Tx,
    memberships: &[Membership],
    only: Option<&[ProjectId]>,
) -> Result<Vec<(OrganizationId, ProjectId)>> {
    let mut found = Vec::new();
    for member in memberships {
        list(tx, member, only, Window::all(Order::Ascending), |id, _| {
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
    tx: &impl Tx,
    user: &users::Meta,
    member: Option<&Membership>,
    only: Option<&[ProjectId]>,
) -> Result<Option<Meta>> {
    let named = |id| only.is_none_or(|only| only.contains(&id));
    if let (Some(member), Some(chosen)) = (member, user.current_project)
        && named(chosen)
        && let Some(project) = tx.meta::<Project>(&(member.organization, chosen))?
        && is_visible(tx, member, &project)?
    {
        return Ok(Some(project));
    }
    let key = match (only, member) {
        (Some(only), _) => first_of(tx, user, only)?,
        (None, Some(member)) => {
            let mut first = None;
            let window = Window { offset: 0, limit: 1, order: Order::Ascending };
            list(tx, member, None, window, |id, _| {
                first = Some((member.organization, id));
                Ok(())
            })?;
            first
        }
        (None, None) => None,
    };
    match key {
        Some(key) => tx.meta::<Project>(&key),
        None => Ok(None),
    }
}

/// Returns the first of these projects, by ID, that the user may see.
fn first_of(
    tx: &impl Tx,
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
