//! Which projects someone may see: any open one, a private one as an admin or by a grant (decisions §3).

use std::collections::{BTreeSet, HashSet};

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::users;
use crate::store::{Order, Tx, Window};

use super::{Head, PRIVATE, Project, grants};

/// Whether a member may see a project: any open one, a private one as an admin or by a grant
/// (decisions §3).
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_visible(tx: &impl Tx, member: &Membership, project: &Head) -> Result<bool> {
    Ok(!project.access_control
        || member.level.administers()
        || grants::find(tx, project, member.user)?.is_some())
}

/// The private projects of an organization that a member may not see.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn hidden_from(tx: &impl Tx, member: &Membership) -> Result<HashSet<ProjectId>> {
    if member.level.administers() {
        return Ok(HashSet::new());
    }
    let granted: HashSet<ProjectId> =
        grants::of_member(tx, member.organization, member.user)?.into_iter().collect();
    let private = tx.keys(&PRIVATE, &member.organization, usize::MAX)?;
    Ok(private.into_iter().map(|(_, id)| id).filter(|id| !granted.contains(id)).collect())
}

/// The projects of an organization that a member may see, and that `only` names where it is given: how
/// many there are in all, and the window's summaries handed to `show` one by one.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list(
    tx: &impl Tx,
    member: &Membership,
    only: Option<&[ProjectId]>,
    window: Window,
    mut show: impl FnMut(ProjectId, &[u8]) -> Result<()>,
) -> Result<u64> {
    let hidden = hidden_from(tx, member)?;
    let organization = member.organization;
    if let Some(only) = only {
        return list_named(tx, organization, only, &hidden, window, show);
    }
    let count = tx.count::<Project>(&organization)?.saturating_sub(hidden.len() as u64);
    if !window.begins_within(count) {
        return Ok(count);
    }
    if hidden.is_empty() {
        tx.scan::<Project, _>(&organization, window, |row| show(row.head.id, row.shown))?;
    } else {
        let keep = |head: &Head| !hidden.contains(&head.id);
        tx.scan_kept::<Project, _>(&organization, window, keep, |row| {
            show(row.head.id, row.shown)
        })?;
    }
    Ok(count)
}

/// The same for a key that is limited to some projects, which are few.
fn list_named(
    tx: &impl Tx,
    organization: OrganizationId,
    only: &[ProjectId],
    hidden: &HashSet<ProjectId>,
    window: Window,
    mut show: impl FnMut(ProjectId, &[u8]) -> Result<()>,
) -> Result<u64> {
    let named: BTreeSet<&ProjectId> = only.iter().filter(|id| !hidden.contains(id)).collect();
    let mut count = 0;
    for id in named {
        let found = tx.view::<Project, _>(&(organization, *id), |row| {
            if window.shows(count) { show(*id, row.shown) } else { Ok(()) }
        })?;
        count += usize::from(found.is_some());
    }
    Ok(count as u64)
}

/// The projects that someone with these memberships may see, and that `only` names where it is given, by
/// number.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn visible(
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

/// What `@current` stands for: the project the user chose, while it is there and shown to them, and the
/// first shown one of the current organization otherwise. Under a key that is limited to projects it is
/// one of those.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn current_project(
    tx: &impl Tx,
    user: &users::Head,
    member: Option<&Membership>,
    only: Option<&[ProjectId]>,
) -> Result<Option<Head>> {
    let named = |id| only.is_none_or(|only| only.contains(&id));
    if let (Some(member), Some(chosen)) = (member, user.current_project)
        && named(chosen)
        && let Some(project) = tx.head::<Project>(&(member.organization, chosen))?
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
        Some(key) => tx.head::<Project>(&key),
        None => Ok(None),
    }
}

/// The first of these projects that the user may see, by number.
fn first_of(
    tx: &impl Tx,
    user: &users::Head,
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
