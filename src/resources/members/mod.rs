//! Members: users in organizations, each with a level. See `docs/spec/members.md`.

pub mod api;
pub mod http;

use std::ops::ControlFlow;

use crate::input::Choice;
use crate::resources::organizations::Organization;
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, EmbeddedUsers, User};

use api::member_body;
pub use api::{Filter, Level, Orders, RECORDS, list};

/// The membership of one user in one organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// The id of the organization.
    pub organization: OrganizationId,
    /// The id of the user.
    pub user: UserId,
    /// The id of the membership.
    pub id: MembershipId,
    /// The level of the user in the organization.
    pub level: Level,
    /// When the user joined.
    pub joined_at: Timestamp,
    /// When the membership was last updated.
    pub updated_at: Timestamp,
    /// Whether lists show the member: the user is active and not a bot.
    pub listed: bool,
}

/// The membership with an id.
pub const BY_ID: Index<Membership, MembershipId> =
    Index::unique(Table::MembershipsById, |member| Some(member.id));
/// The organizations of a user.
pub const BY_USER: Index<Membership, (UserId, OrganizationId)> =
    Index::many(Table::MembershipsByUser, |member| Some((member.user, member.organization)));
/// The listed members of an organization, in the order in which they joined.
pub const BY_JOINING: Index<Membership, (OrganizationId, Timestamp)> =
    Index::many(Table::MembershipsByJoining, |member| {
        member.listed.then_some((member.organization, member.joined_at))
    });

impl_record!(Membership {
    table: Memberships,
    key: |member| -> (OrganizationId, UserId) { (member.organization, member.user) },
    indexes: [&BY_ID, &BY_USER, &BY_JOINING],
    // The listed members of an organization, and the organizations of a user.
    counts: [
        |member| member.listed.then(|| member.organization.encoded()),
        |member| Some(member.user.encoded()),
    ],
    reuses_keys: true,
    owner: |member, _| Ok(Some(member.organization.owner())),
    references: |member| [
        Reference::to::<Organization>(&member.organization),
        Reference::to::<User>(&member.user),
    ],
});

/// How a user received the invite that they accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinedBy {
    /// By a link that a member handed over, which does not prove the address.
    Link,
    /// By the mail to the invite's address, which proves the address.
    Mail,
}

/// The invite with which a member joined. A separate record, because the creator of an organization has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembershipOrigin {
    /// The id of the organization.
    pub organization: OrganizationId,
    /// The id of the user.
    pub user: UserId,
    /// The id of the membership.
    pub membership: MembershipId,
    /// The user that created the invite.
    pub invited_by: Option<UserId>,
    /// How the user received the invite.
    pub joined_by: JoinedBy,
    /// If the user took over an account by joining, when that account was created.
    pub took_over: Option<Timestamp>,
}

impl_record!(MembershipOrigin {
    table: MembershipOrigins,
    key: |origin| -> (OrganizationId, UserId) { (origin.organization, origin.user) },
    reuses_keys: true,
    owner: |origin, _| Ok(Some(origin.organization.owner())),
    references: |origin| [Reference::to::<Membership>(&(origin.organization, origin.user))],
});

/// The end of the addresses of PostHog's own bots, which no list shows.
const BOT_SUFFIX: &str = "@posthogbot.user";

/// Returns whether an address belongs to a bot.
pub fn is_bot(email: &str) -> bool {
    email.to_lowercase().ends_with(BOT_SUFFIX)
}

/// Returns whether lists show the user's memberships.
fn is_listed(user: &User) -> bool {
    user.meta.is_active && !is_bot(&user.fields.email)
}

input! {
    /// The fields of a membership to update.
    pub struct MemberPatch {
        /// The new level.
        level: Choice<Level>,
    }
}

/// Adds a user to an organization.
///
/// # Errors
/// 400 if the user is already a member, 404 if the user or the organization was deleted, 503 while a former membership
/// of the user is being deleted.
pub fn create(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
    level: Level,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<Membership> {
    let known = tx.get::<User>(&user)?;
    if !tx.exists::<Organization>(&organization)? {
        return Err(Error::not_found_as("Organization not found."));
    }
    if find(tx, organization, user)?.is_some() {
        return Err(already_member());
    }
    if is_pending_deletion(tx, organization, user)? {
        return Err(Error::overloaded(1, "a former membership is still being removed"));
    }
    let member = Membership {
        organization,
        user,
        id: MembershipId(rng.uuid(now)),
        level,
        joined_at: now,
        updated_at: now,
        listed: is_listed(&known),
    };
    tx.put(&member)?;
    Ok(member)
}

/// Returns the error of a user that would join its organization again.
pub fn already_member() -> Error {
    invalid("A user with this email address already belongs to the organization.")
}

/// Returns the membership of a user in an organization.
pub fn find(
    tx: &dyn Raw,
    organization: OrganizationId,
    user: UserId,
) -> Result<Option<Membership>> {
    tx.meta::<Membership>(&(organization, user))
}

/// Returns the membership of a user in an organization, if lists show it.
pub fn find_listed(
    tx: &dyn Raw,
    organization: OrganizationId,
    user: UserId,
) -> Result<Option<Membership>> {
    Ok(find(tx, organization, user)?.filter(|member| member.listed))
}

/// Returns the membership with this id in an organization, if lists show it.
pub fn find_by_id(
    tx: &dyn Raw,
    organization: OrganizationId,
    id: MembershipId,
) -> Result<Option<Membership>> {
    match tx.lookup(&BY_ID, &id)? {
        Some((of, user)) if of == organization => find_listed(tx, organization, user),
        _ => Ok(None),
    }
}

/// Updates the level of a member. The checks run in PostHog's order, see `docs/spec/members.md`.
///
/// # Errors
/// 404 if the member does not exist, 403 if the caller's level does not permit the change.
pub fn update(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    user: UserId,
    patch: &Parsed<MemberPatch>,
    now: Timestamp,
) -> Result<()> {
    let mut member = get(tx, caller.organization, user)?;
    require_can_manage(caller, &member)?;
    let Some(level) = patch.get()?.level.filter(|level| *level != member.level) else {
        return Ok(());
    };
    require_may_give(caller, &member, level)?;
    member.level = level;
    member.updated_at = now;
    tx.put(&member)
}

/// Removes a member. The checks run in PostHog's order.
///
/// # Errors
/// 404 if the member does not exist, 403 if the caller's level does not permit it, 400 for an owner.
pub fn remove(tx: &mut WriteTx<'_>, caller: &Membership, user: UserId) -> Result<()> {
    let member = get(tx, caller.organization, user)?;
    require_may_remove(caller, &member)?;
    delete(tx, member.organization, user)
}

/// Shows a user's memberships in lists if the user is active and not a bot, and hides them otherwise.
pub fn set_listed(tx: &mut WriteTx<'_>, user: &User) -> Result<()> {
    for key in tx.keys(&BY_USER, &user.meta.id, usize::MAX)? {
        let mut member: Membership = tx.get(&key)?;
        member.listed = is_listed(user);
        tx.put(&member)?;
    }
    Ok(())
}

/// Returns the membership of a user in an organization, including one that lists do not show: it can still be updated
/// and removed.
fn get(tx: &dyn Raw, organization: OrganizationId, user: UserId) -> Result<Membership> {
    find(tx, organization, user)?.ok_or_else(Error::not_found)
}

/// Checks that the caller may edit the member: callers may edit themselves, admins also members up to their own level.
fn require_can_manage(caller: &Membership, member: &Membership) -> Result<()> {
    if caller.user == member.user {
        return Ok(());
    }
    if !caller.level.is_admin() {
        return Err(Error::denied("You can only edit others if you are an admin."));
    }
    if member.level > caller.level {
        return Err(Error::denied("You can only edit others with level lower or equal to you."));
    }
    Ok(())
}

/// Checks that the caller may remove the member.
fn require_may_remove(caller: &Membership, member: &Membership) -> Result<()> {
    require_can_manage(caller, member)?;
    if member.level == Level::Owner {
        return Err(invalid("Cannot leave the organization as its owner!"));
    }
    Ok(())
}

/// Checks that the caller may give the member this level.
fn require_may_give(caller: &Membership, member: &Membership, level: Level) -> Result<()> {
    require_can_manage(caller, member)?;
    if caller.user == member.user {
        return Err(Error::denied("You can't change your own access level."));
    }
    if level == Level::Owner && caller.level != Level::Owner {
        return Err(Error::denied(
            "You can only make another member owner if you're this organization's owner.",
        ));
    }
    if level > caller.level {
        return Err(Error::denied(
            "You can only change access level of others to lower or equal to your current one.",
        ));
    }
    Ok(())
}

/// Returns the JSON of a member.
///
/// # Errors
/// 404 if the member does not exist.
pub fn body(tx: &dyn Raw, organization: OrganizationId, user: UserId) -> Result<Versioned> {
    let viewed = tx.view::<Membership, _>(&(organization, user), |row| {
        let version = row.version;
        let body = member_body(tx, &row.into_record()?, &mut EmbeddedUsers::default())?;
        Ok(Versioned::new(version, body.to_json(512)?))
    })?;
    viewed.ok_or_else(Error::not_found)
}

/// Returns the JSON of a member that lists show.
///
/// # Errors
/// 404 if the member does not exist, or if lists do not show it.
pub fn listed_body(tx: &dyn Raw, organization: OrganizationId, user: UserId) -> Result<Versioned> {
    find_listed(tx, organization, user)?.ok_or_else(Error::not_found)?;
    body(tx, organization, user)
}

/// Returns the memberships of a user, oldest organization first, without deleted organizations.
pub fn organizations_of(tx: &dyn Raw, user: UserId) -> Result<Vec<Membership>> {
    let mut memberships = Vec::new();
    let all = Window::all(Order::Ascending);
    tx.walk(&BY_USER, &user, all, |row| {
        if tx.exists::<Organization>(&row.meta.organization)? {
            memberships.push(row.meta);
        }
        Ok(())
    })?;
    Ok(memberships)
}

/// Returns the organization that `@current` refers to: the one that the user chose, if it exists and the user is a
/// member of it, or else the user's oldest organization.
pub fn current_organization(tx: &dyn Raw, user: &users::Meta) -> Result<Option<OrganizationId>> {
    if let Some(chosen) = user.current_organization
        && find(tx, chosen, user.id)?.is_some()
        && tx.exists::<Organization>(&chosen)?
    {
        return Ok(Some(chosen));
    }
    let mut oldest = None;
    tx.walk_from(&BY_USER, &user.id, &user.id, |row| {
        if !tx.exists::<Organization>(&row.meta.organization)? {
            return Ok(ControlFlow::Continue(()));
        }
        oldest = Some(row.meta.organization);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(oldest)
}

/// Deletes a membership and its origin. Marks the member's permissions for deletion in later transactions.
pub fn delete(tx: &mut WriteTx<'_>, organization: OrganizationId, user: UserId) -> Result<()> {
    let key = (organization, user);
    tx.log_about::<Membership>(&key);
    tx.remove::<Membership>(&key)?;
    tx.remove::<MembershipOrigin>(&key)?;
    tx.put(&PendingDeletion::Member(organization, user))
}

/// Returns whether permissions of a former member are still being deleted.
pub fn is_pending_deletion(
    tx: &dyn Raw,
    organization: OrganizationId,
    user: UserId,
) -> Result<bool> {
    tx.exists::<PendingDeletion>(&PendingDeletion::Member(organization, user).key())
}

/// Returns whether the organization has no other member, including members that lists do not show.
pub fn is_last_member(tx: &dyn Raw, member: &Membership) -> Result<bool> {
    let (mut members, two) = (0, Window { offset: 0, limit: 2, order: Order::Ascending });
    tx.scan::<Membership, _>(&member.organization, two, |_| {
        members += 1;
        Ok(())
    })?;
    Ok(members == 1)
}
