//! Members: users in organizations, each at a level (API document, Member; facts-org §4).

pub mod body;
mod ending;
pub mod http;
mod level;
mod list;
mod origin;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{MembershipId, OrganizationId, UserId};
use crate::input;
use crate::input::{Choice, Choices};
use crate::resources::organizations::Organization;
use crate::resources::users::{self, User};
use crate::secret::Draw;
use crate::store::{
    Count, Index, Indexed, Key, Order, Owner, Record, Reference, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

pub use ending::{end, is_alone, is_ending};
pub use level::Level;
pub use list::{Filter, Orders, list};
pub use origin::{JoinedBy, MembershipOrigin};

/// One user in one organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// The organization.
    pub organization: OrganizationId,
    /// The user.
    pub user: UserId,
    /// The membership's own id.
    pub id: MembershipId,
    /// What the user may do here.
    pub level: Level,
    /// When the user joined.
    pub joined_at: Timestamp,
    /// When the membership last changed.
    pub updated_at: Timestamp,
    /// Whether the user is active and no bot; the memberships of others are not listed.
    pub listed: bool,
}

/// The organizations of a user.
pub const BY_USER: Index<Membership, (UserId, OrganizationId)> =
    Index::many(Table::MembershipsByUser, |member| Some((member.user, member.organization)));
/// The listed members of an organization, in the order in which they joined.
pub const BY_JOINING: Index<Membership, (OrganizationId, Timestamp)> =
    Index::many(Table::MembershipsByJoining, |member| {
        member.listed.then_some((member.organization, member.joined_at))
    });

impl Record for Membership {
    const TABLE: Table = Table::Memberships;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_USER, &BY_JOINING];
    /// The listed members of an organization, and the organizations of a user.
    const COUNTS: &'static [Count<Self>] = &[
        Count::per(|member| member.listed.then(|| member.organization.encoded())),
        Count::per(|member| Some(member.user.encoded())),
    ];
    const KEYS_COME_BACK: bool = true;
    type Key = (OrganizationId, UserId);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> (OrganizationId, UserId) {
        (self.organization, self.user)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Organization>(&self.organization), Reference::to::<User>(&self.user)]
    }
}

/// How the addresses of PostHog's own bots end, which no list shows (facts-org §4.2).
const BOTS: &str = "@posthogbot.user";

/// Whether an address is a bot's.
pub fn is_bot(email: &str) -> bool {
    email.to_lowercase().ends_with(BOTS)
}

/// Whether the user's memberships are listed.
fn is_listed(user: &User) -> bool {
    user.head.is_active && !is_bot(&user.shown.email)
}

/// What `level` takes.
pub struct Levels;

impl Choices for Levels {
    type Value = Level;
    const ALL: &'static [Level] = &Level::ALL;
}

impl From<Level> for Value {
    fn from(level: Level) -> Self {
        level.number().into()
    }
}

input! {
    /// What may be changed of a membership.
    pub struct MemberPatch {
        /// The new level.
        level: Choice<Levels>,
    }
}

/// Adds a user to an organization.
///
/// # Errors
/// 400 when the user belongs to it already; 404 when either is gone; 503 while a former membership is being removed.
pub fn create(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
    level: Level,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<Membership> {
    let known = tx.get::<User>(&user)?;
    if !tx.exists::<Organization>(&organization)? {
        return Err(Error::not_found_as("Organization not found."));
    }
    if find(tx, organization, user)?.is_some() {
        return Err(Error::invalid(
            "invalid_input",
            "A user with this email address already belongs to the organization.",
        ));
    }
    ending::require_ended(tx, organization, user)?;
    let member = Membership {
        organization,
        user,
        id: MembershipId(draw.uuid(now)),
        level,
        joined_at: now,
        updated_at: now,
        listed: is_listed(&known),
    };
    tx.put(&member)?;
    Ok(member)
}

/// The membership of a user in an organization, if there is one.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find(
    tx: &impl Tx,
    organization: OrganizationId,
    user: UserId,
) -> Result<Option<Membership>> {
    tx.head::<Membership>(&(organization, user))
}

/// The membership of a user in an organization, if there is one that lists show.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find_listed(
    tx: &impl Tx,
    organization: OrganizationId,
    user: UserId,
) -> Result<Option<Membership>> {
    Ok(find(tx, organization, user)?.filter(|member| member.listed))
}

/// The listed membership with this id in an organization, if there is one. No index leads to it: it walks
/// the organization's memberships until it comes to the one.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find_by_id(
    tx: &impl Tx,
    organization: OrganizationId,
    id: MembershipId,
) -> Result<Option<Membership>> {
    let mut found = None;
    let first = Window { offset: 0, limit: 1, order: Order::Ascending };
    let keep = |member: &Membership| member.id == id && member.listed;
    tx.scan_kept::<Membership, _>(&organization, first, keep, |row| {
        found = Some(row.head);
        Ok(())
    })?;
    Ok(found)
}

/// Changes a member's level, by the rules of facts-org §4.3 in their order.
///
/// # Errors
/// 404 for no such member; 403 where the caller's level does not reach.
pub fn update(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    user: UserId,
    patch: &input::Parsed<MemberPatch>,
    now: Timestamp,
) -> Result<()> {
    let mut member = get(tx, caller.organization, user)?;
    require_reach(caller, &member)?;
    let Some(level) = patch.get()?.level else {
        return Ok(());
    };
    require_grantable(caller, &member, level)?;
    if member.level == level {
        return Ok(());
    }
    member.level = level;
    member.updated_at = now;
    tx.put(&member)
}

/// Removes a member, by the rules of facts-org §4.4.
///
/// # Errors
/// 404 for no such member; 403 where the caller's level does not reach; 400 for an owner.
pub fn remove(tx: &mut WriteTx<'_>, caller: &Membership, user: UserId) -> Result<()> {
    let member = get(tx, caller.organization, user)?;
    require_reach(caller, &member)?;
    if member.level == Level::Owner {
        return Err(Error::invalid("invalid_input", "Cannot leave the organization as its owner!"));
    }
    end(tx, member.organization, user)
}

/// Shows or hides a user's memberships in lists, as the user is active and no bot, or not.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn set_listed(tx: &mut WriteTx<'_>, user: &User) -> Result<()> {
    for key in tx.keys(&BY_USER, &user.head.id, usize::MAX)? {
        let mut member: Membership = tx.get(&key)?;
        member.listed = is_listed(user);
        tx.put(&member)?;
    }
    Ok(())
}

/// The membership of a user in an organization, whether lists show it or not: who is not shown can be
/// changed and removed all the same.
fn get(tx: &impl Tx, organization: OrganizationId, user: UserId) -> Result<Membership> {
    find(tx, organization, user)?.ok_or_else(Error::not_found)
}

/// Oneself is always within reach; others only for admins, and only up to their own level.
fn require_reach(caller: &Membership, member: &Membership) -> Result<()> {
    if caller.user == member.user {
        return Ok(());
    }
    if !caller.level.administers() {
        return Err(Error::denied("You can only edit others if you are an admin."));
    }
    if member.level > caller.level {
        return Err(Error::denied("You can only edit others with level lower or equal to you."));
    }
    Ok(())
}

fn require_grantable(caller: &Membership, member: &Membership, level: Level) -> Result<()> {
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

/// The Member of the API document.
///
/// # Errors
/// 404 when there is no such member.
pub fn body(tx: &impl Tx, organization: OrganizationId, user: UserId) -> Result<Versioned> {
    let mut json = Vec::with_capacity(512);
    let version = tx.view::<Membership, _>(&(organization, user), |row| {
        let version = row.version;
        body::Writer::default().write(tx, &row.into_record()?, &mut json)?;
        Ok(version)
    })?;
    Ok(Versioned::new(version.ok_or_else(Error::not_found)?, json))
}

/// The organizations that a user belongs to, oldest first, without those removed meanwhile.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn organizations_of(tx: &impl Tx, user: UserId) -> Result<Vec<Membership>> {
    let mut memberships = Vec::new();
    let all = Window::all(Order::Ascending);
    tx.walk(&BY_USER, &user, all, |row| {
        if tx.exists::<Organization>(&row.head.organization)? {
            memberships.push(row.head);
        }
        Ok(())
    })?;
    Ok(memberships)
}

/// What `@current` stands for: the organization the user chose, while it is there and the user
/// belongs to it, and the user's oldest otherwise.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn current_organization(tx: &impl Tx, user: &users::Head) -> Result<Option<OrganizationId>> {
    if let Some(chosen) = user.current_organization
        && find(tx, chosen, user.id)?.is_some()
        && tx.exists::<Organization>(&chosen)?
    {
        return Ok(Some(chosen));
    }
    let mut oldest = None;
    tx.walk_until(&BY_USER, &user.id, 0, Order::Ascending, |row| {
        if !tx.exists::<Organization>(&row.head.organization)? {
            return Ok(ControlFlow::Continue(()));
        }
        oldest = Some(row.head.organization);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(oldest)
}
