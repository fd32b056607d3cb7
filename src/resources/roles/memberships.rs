//! The members of a role, and which of them lists show: those whose users are enabled. When an operator enables or
//! disables a user, several transactions may be needed. Each role changes with its list, its count and its version in
//! one of them.

use std::ops::ControlFlow;

use crate::ids::{RoleMembershipId, UserUuid};
use crate::resources::members::{self, Membership};
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, User};

use super::{NewRoleMembership, Role, RoleKey, exists};

/// The membership of a member of the organization in a role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleMembership {
    /// The id of the organization.
    pub organization: OrganizationId,
    /// The id of the role.
    pub role: RoleId,
    /// The id of the user.
    pub user: UserId,
    /// The id of the role membership.
    pub id: RoleMembershipId,
    /// When the user joined the role.
    pub joined_at: Timestamp,
    /// When the role membership was last updated.
    pub updated_at: Timestamp,
    /// Whether lists show it, which they do if they show the member.
    pub listed: bool,
}

/// The role membership with an id.
pub const BY_ID: Index<RoleMembership, RoleMembershipId> =
    Index::unique(Table::RoleMembershipsById, |member| Some(member.id));
/// The roles of a member.
pub const BY_USER: Index<RoleMembership, (OrganizationId, UserId)> =
    Index::many(Table::RoleMembershipsByUser, |member| Some((member.organization, member.user)));
/// The listed members of a role, in the order in which they joined it.
pub const BY_JOINING: Index<RoleMembership, (OrganizationId, RoleId, Timestamp)> =
    Index::many(Table::RoleMembershipsByJoining, |member| {
        member.listed.then_some((member.organization, member.role, member.joined_at))
    });

impl_record!(RoleMembership {
    table: RoleMemberships,
    key: |member| -> (OrganizationId, RoleId, UserId) {
        (member.organization, member.role, member.user)
    },
    indexes: [&BY_ID, &BY_USER, &BY_JOINING],
    // The listed members of a role.
    counts: [|member| member.listed.then(|| (member.organization, member.role).encoded())],
    reuses_keys: true,
    owner: |member, _| Ok(Some(member.organization.owner())),
    references: |member| [
        Reference::to::<Role>(&(member.organization, member.role)),
        Reference::to::<Membership>(&(member.organization, member.user)),
    ],
});

/// Adds a member of the organization to a role. The checks run in PostHog's order, see `docs/spec/roles.md`. `role` is
/// none if the path names no role.
///
/// # Errors
/// 400 for an invalid field, if the role or the member does not exist, or if the member already is in the role.
pub fn add(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    role: Option<RoleId>,
    new: &Parsed<NewRoleMembership>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<RoleMembership> {
    let user = UserUuid(new.get()?.user_uuid);
    let role = match role {
        Some(role) if exists(tx, organization, role)? => role,
        _ => return Err(invalid("Role does not exist.")),
    };
    let user = tx.lookup(&users::BY_UUID, &user)?;
    let member = user.map_or(Ok(None), |user| members::find_listed(tx, organization, user))?;
    let member = member.ok_or_else(|| invalid("User does not exist."))?;
    if tx.exists::<RoleMembership>(&(organization, role, member.user))? {
        return Err(invalid("User is already part of the role."));
    }
    put(tx, role, &member, rng, now)
}

/// Adds a member to a role that exists and that the member is not in.
pub(super) fn put(
    tx: &mut WriteTx<'_>,
    role: RoleId,
    member: &Membership,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<RoleMembership> {
    let Membership { organization, user, listed, .. } = *member;
    let id = RoleMembershipId(rng.uuid(now));
    let added =
        RoleMembership { organization, role, user, id, joined_at: now, updated_at: now, listed };
    tx.log_about::<RoleMembership>(&added.key());
    tx.put(&added)?;
    tx.bump_version::<Role>(&(organization, role))?;
    Ok(added)
}

/// Returns the membership with this id in a role of the organization.
///
/// # Errors
/// 404 if the role has no such membership, or if lists do not show it.
pub fn get(tx: &dyn Raw, role: RoleKey, id: RoleMembershipId) -> Result<RoleMembership> {
    let found: Option<RoleMembership> = match tx.lookup(&BY_ID, &id)? {
        Some(key) if (key.0, key.1) == role && tx.exists::<Role>(&role)? => tx.find(&key)?,
        _ => None,
    };
    found.filter(|member| member.listed).ok_or_else(Error::not_found)
}

/// Removes a member from a role.
pub fn remove(tx: &mut WriteTx<'_>, member: &RoleMembership) -> Result<()> {
    tx.log_about::<RoleMembership>(&member.key());
    tx.remove::<RoleMembership>(&member.key())?;
    tx.bump_version::<Role>(&(member.organization, member.role))
}

/// Returns the roles of a member, without deleted ones.
pub fn of_user(tx: &dyn Raw, organization: OrganizationId, user: UserId) -> Result<Vec<RoleId>> {
    let mut roles = Vec::new();
    for (_, role, _) in tx.keys(&BY_USER, &(organization, user), usize::MAX)? {
        if exists(tx, organization, role)? {
            roles.push(role);
        }
    }
    Ok(roles)
}

/// Returns the number of a member's role memberships, at most `limit`.
pub fn count_of_user(
    tx: &dyn Raw,
    organization: OrganizationId,
    user: UserId,
    limit: usize,
) -> Result<usize> {
    Ok(tx.keys(&BY_USER, &(organization, user), limit)?.len())
}

/// Removes a former member of the organization from all roles.
pub fn leave_all(tx: &mut WriteTx<'_>, organization: OrganizationId, user: UserId) -> Result<()> {
    for key in tx.keys(&BY_USER, &(organization, user), usize::MAX)? {
        tx.remove::<RoleMembership>(&key)?;
        if exists(tx, organization, key.1)? {
            tx.bump_version::<Role>(&(organization, key.1))?;
        }
    }
    Ok(())
}

/// The maximum number of role memberships that one transaction shows or hides.
const LISTING_BATCH: usize = 500;

/// A user that was enabled or disabled, and whose role memberships do not all follow yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingListing {
    /// The id of the user.
    pub user: UserId,
    /// The first organization whose role memberships may not follow yet.
    pub next: OrganizationId,
}

impl_record!(PendingListing {
    table: PendingListings,
    key: |pending| -> UserId { pending.user },
    reuses_keys: true,
    owner: |_, _| Ok(None),
    references: |pending| [Reference::to::<User>(&pending.user)],
});

/// Shows a user's role memberships in lists if lists show the user's memberships, and hides them otherwise. If they
/// exceed one transaction, [`continue_listing`] completes it.
pub fn set_listed(tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
    update_batch(tx, PendingListing { user, next: OrganizationId(Uuid::nil()) })
}

/// Shows or hides one batch of role memberships of a user that was enabled or disabled. Returns whether there may be
/// more.
pub fn continue_listing(tx: &mut WriteTx<'_>) -> Result<bool> {
    let mut next = None;
    let first = Window { offset: 0, limit: 1, order: Order::Ascending };
    tx.scan::<PendingListing, _>(&(), first, |row| {
        next = Some(row.meta);
        Ok(())
    })?;
    match next {
        Some(pending) => update_batch(tx, pending).map(|()| true),
        None => Ok(false),
    }
}

fn update_batch(tx: &mut WriteTx<'_>, pending: PendingListing) -> Result<()> {
    let (outdated, rest) = find_outdated(tx, pending)?;
    for mut member in outdated {
        member.listed = !member.listed;
        tx.put(&member)?;
        if exists(tx, member.organization, member.role)? {
            tx.bump_version::<Role>(&(member.organization, member.role))?;
        }
    }
    match rest {
        Some(next) => tx.put(&PendingListing { next, ..pending }),
        None => tx.remove::<PendingListing>(&pending.key()).map(drop),
    }
}

/// Returns the first role memberships that do not follow the user's membership in their organization. Also returns the
/// organization to continue with if there may be more.
fn find_outdated(
    tx: &dyn Raw,
    pending: PendingListing,
) -> Result<(Vec<RoleMembership>, Option<OrganizationId>)> {
    let PendingListing { user, next } = pending;
    let (mut outdated, mut rest) = (Vec::new(), None);
    tx.walk_from(&members::BY_USER, &user, &(user, next), |row| {
        let Membership { organization, listed, .. } = row.meta;
        let window =
            Window { offset: 0, limit: LISTING_BATCH - outdated.len(), order: Order::Ascending };
        let is_outdated = |member: &RoleMembership| member.listed != listed;
        tx.walk_where(&BY_USER, &(organization, user), window, is_outdated, |row| {
            outdated.push(row.meta);
            Ok(())
        })?;
        if outdated.len() < LISTING_BATCH {
            return Ok(ControlFlow::Continue(()));
        }
        rest = Some(organization);
        Ok(ControlFlow::Break(()))
    })?;
    Ok((outdated, rest))
}
