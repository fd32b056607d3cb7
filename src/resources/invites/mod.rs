//! Invites: what lets somebody join an organization (API document, Invite; decisions §4; facts-org §3).

pub mod body;
pub mod http;
mod input;
mod links;
mod pending;
mod project_access;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{InviteId, LetterId, OrganizationId, UserId};
use crate::mail::outbox::{self, About};
use crate::resources::members::{self, Level, Membership};
use crate::resources::organizations::Organization;
use crate::resources::users;
use crate::secret::Draw;
use crate::store::{
    Count, Index, Indexed, Key, Owner, Record, Reference, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

pub use input::{InviteFields, NewInvite, NewInvites};
pub use links::{Links, Proof};
pub use pending::remove_made_by;
pub use project_access::ProjectAccess;
use project_access::ShownLevel;

/// An invite.
#[derive(Debug, Clone, PartialEq)]
pub struct Invite {
    /// What rules decide by.
    pub head: Head,
    /// Its fields.
    pub shown: Shown,
}

/// What rules decide by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Its id.
    pub id: InviteId,
    /// The organization that it leads into.
    pub organization: OrganizationId,
    /// Counts the invites of the file: lists are sorted by it.
    pub serial: u64,
    /// Whom it is for: the address in lower case.
    pub address: String,
    /// The level at which they join.
    pub level: Level,
    /// Who invited them.
    pub created_by: Option<UserId>,
    /// From when on it cannot be accepted any more.
    pub expires_at: Timestamp,
}

/// The fields of the API document that do not depend on the moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = InviteFixed)]
pub struct Shown {
    /// Its id.
    pub id: InviteId,
    /// Whom it is for, as it was typed, the domain in lower case.
    #[schema(format = IdnEmail)]
    pub target_email: String,
    /// What the inviter calls them.
    pub first_name: String,
    /// Whether a mail was handed to the outbox.
    pub emailing_attempt_made: bool,
    /// The level at which they join.
    pub level: Level,
    /// When it was made.
    pub created_at: Timestamp,
    /// The same: an invite is never changed, only replaced.
    pub updated_at: Timestamp,
    /// What the inviter tells them.
    pub message: Option<String>,
    /// The private projects that they get access to.
    pub private_project_access: Vec<ProjectAccess>,
    /// Whether a mail was asked for.
    pub send_email: bool,
    /// Whether it was to take over what a pending one gave.
    pub combine_pending_invites: bool,
}

/// By id alone, which is unique over all organizations.
pub const BY_ID: Index<Invite, InviteId> =
    Index::unique(Table::InvitesById, |invite| Some(invite.head.id));
/// The one invite for an address.
pub const BY_ADDRESS: Index<Invite, (OrganizationId, String)> =
    Index::unique(Table::InvitesByAddress, |invite| {
        Some((invite.head.organization, invite.head.address.clone()))
    });
/// The invites of an organization, oldest first.
pub const BY_SERIAL: Index<Invite, (OrganizationId, u64)> =
    Index::many(Table::InvitesBySerial, |invite| {
        Some((invite.head.organization, invite.head.serial))
    });

impl Record for Invite {
    const TABLE: Table = Table::Invites;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_ID, &BY_ADDRESS, &BY_SERIAL];
    const COUNTS: &'static [Count<Self>] =
        &[Count::per(|invite| Some(invite.head.organization.encoded()))];
    type Key = (OrganizationId, InviteId);
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> Self::Key {
        (self.head.organization, self.head.id)
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.head.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Organization>(&self.head.organization)]
    }
}

impl Head {
    /// Whether it cannot be accepted any more.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }
}

/// What holds for every invite that is made now.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// How long it can be accepted.
    pub ttl: Duration,
    /// Whether there is a mail server to hand mails to.
    pub sends_mail: bool,
    /// How many pending invites an organization may have.
    pub most: u64,
}

/// Makes an invite, in the place of any other for the same address in the organization.
///
/// # Errors
/// 403 for a level above the inviter's own; 400 for a field, where the address is a member's, or where the
/// organization has as many pending invites as it may have.
pub fn create(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    terms: Terms,
    new: &NewInvite,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<InviteId> {
    new.require_level_within(caller)?;
    let fields = new.fields.get()?;
    require_grantable(tx, caller, fields)?;
    put(tx, caller, terms, fields, draw, now)
}

/// Makes all of these invites or none.
///
/// # Errors
/// As [`create`]; a 400 is reported at `<index>__<field>`, and nobody is told of an earlier invite's
/// fields before each one's level is within the inviter's own.
pub fn create_all(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    terms: Terms,
    new: &NewInvites,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<()> {
    let new = new.get()?;
    new.iter().try_for_each(|new| new.require_level_within(caller))?;
    let mut all = Vec::with_capacity(new.len());
    for (index, new) in new.iter().enumerate() {
        let checked = new.fields.get().and_then(|fields| {
            require_grantable(tx, caller, fields)?;
            Ok(fields)
        });
        all.push(checked.map_err(|error| input::at(index, error))?);
    }
    for (index, fields) in all.into_iter().enumerate() {
        put(tx, caller, terms, fields, draw, now).map_err(|error| input::at(index, error))?;
    }
    Ok(())
}

fn require_grantable(tx: &impl Tx, caller: &Membership, fields: &InviteFields) -> Result<()> {
    let sent = fields.private_project_access.clone().value().unwrap_or_default();
    project_access::require_grantable(tx, caller, &sent)
}

fn put(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    terms: Terms,
    fields: &InviteFields,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<InviteId> {
    let organization = caller.organization;
    require_person(&fields.target_email)?;
    require_no_member(tx, organization, &fields.target_email)?;
    let id = InviteId(draw.uuid(now));
    let shown = input::shown(fields.clone(), id, terms.sends_mail, now);
    let mut invite = Invite {
        head: Head {
            id,
            organization,
            serial: tx.next_number(Table::Invites)?,
            address: shown.target_email.to_lowercase(),
            level: shown.level,
            created_by: Some(caller.user),
            expires_at: now.plus(terms.ttl),
        },
        shown,
    };
    let replaced = take(tx, organization, &invite.head.address)?;
    pending::require_room(tx, organization, terms.most, now)?;
    if let Some(replaced) = replaced
        && invite.shown.combine_pending_invites
        && !replaced.head.is_expired(now)
    {
        combine(tx, caller, &mut invite, &replaced)?;
    }
    if invite.shown.emailing_attempt_made {
        let to = invite.shown.target_email.clone();
        let about = About::Invite { invite: id, to, by: Some(caller.user) };
        outbox::post(tx, LetterId(id.0), organization, about, now)?;
    }
    tx.put(&invite)?;
    Ok(id)
}

/// Bots are shown in no list, so nobody gets in as one.
fn require_person(email: &str) -> Result<()> {
    if members::is_bot(email) {
        return Err(Error::field("target_email", "invalid_input", "Enter a valid email address."));
    }
    Ok(())
}

fn require_no_member(tx: &impl Tx, organization: OrganizationId, email: &str) -> Result<()> {
    let Some(user) = users::find_by_email(tx, email)? else { return Ok(()) };
    match members::find(tx, organization, user.head.id)? {
        None => Ok(()),
        Some(_) => Err(Error::invalid(
            "invalid_input",
            "A user with this email address already belongs to the organization.",
        )),
    }
}

/// Gives `invite` what the pending one gave, as far as the inviter may give it: the higher level, and the
/// higher level on each project (facts-org §3.2; decisions §4).
fn combine(tx: &impl Tx, caller: &Membership, invite: &mut Invite, pending: &Invite) -> Result<()> {
    let level = invite.head.level.max(pending.head.level.min(caller.level));
    invite.head.level = level;
    invite.shown.level = level;
    let mut highest = BTreeMap::new();
    let inherited = project_access::within(tx, caller, &pending.shown.private_project_access)?;
    for ProjectAccess { id, level } in
        inherited.into_iter().chain(invite.shown.private_project_access.drain(..))
    {
        let known = highest.entry(id).or_insert(level.granted());
        *known = (*known).max(level.granted());
    }
    invite.shown.private_project_access = highest
        .into_iter()
        .map(|(id, level)| ProjectAccess { id, level: ShownLevel::word(level) })
        .collect();
    Ok(())
}

/// Removes an invite, and its mail if that was not sent yet.
///
/// # Errors
/// 404 when there is none.
pub fn remove(tx: &mut WriteTx<'_>, organization: OrganizationId, id: InviteId) -> Result<()> {
    tx.remove::<Invite>(&(organization, id))?.ok_or_else(Error::not_found)?;
    outbox::withdraw(tx, LetterId(id.0))
}

/// Removes the invite for an address, and its mail if that was not sent yet; answers the invite.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn take(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    address: &str,
) -> Result<Option<Invite>> {
    let Some(key) = tx.lookup(&BY_ADDRESS, &(organization, address.to_owned()))? else {
        return Ok(None);
    };
    outbox::withdraw(tx, LetterId(key.1.0))?;
    tx.remove::<Invite>(&key)
}

/// The invite with this id, in whichever organization, while it holds: while the organization is there, and
/// whoever made the invite is a member who may still give what it gives. So nobody who was removed or
/// lowered comes back by an invite of their own.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find_by_id(tx: &impl Tx, id: InviteId) -> Result<Option<Invite>> {
    let Some(key) = tx.lookup(&BY_ID, &id)? else { return Ok(None) };
    if !tx.exists::<Organization>(&key.0)? {
        return Ok(None);
    }
    let invite: Option<Invite> = tx.find(&key)?;
    match invite {
        Some(invite) if holds(tx, &invite)? => Ok(Some(invite)),
        _ => Ok(None),
    }
}

fn holds(tx: &impl Tx, invite: &Invite) -> Result<bool> {
    let Some(inviter) = invite.head.created_by else { return Ok(true) };
    let inviter = members::find_listed(tx, invite.head.organization, inviter)?;
    let Some(inviter) = inviter.filter(|inviter| inviter.level >= invite.head.level) else {
        return Ok(false);
    };
    project_access::holds(tx, &inviter, &invite.shown.private_project_access)
}

/// The invites of the caller's organization: how many there are in all, and those in `window` as the items of a JSON
/// array. Access to private projects that the caller may not see is left out.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list(
    tx: &impl Tx,
    caller: &Membership,
    window: Window,
    now: Timestamp,
) -> Result<(u64, Vec<u8>)> {
    let organization = caller.organization;
    let count = tx.count::<Invite>(&organization)?;
    let mut items = body::Items::of(caller);
    if window.begins_within(count) {
        tx.walk(&BY_SERIAL, &organization, window, |row| items.push(tx, &row, now))?;
    }
    Ok((count, items.text.into_bytes()))
}

/// The Invite of the API document, with the link to hand over if `links` are given and no mail was queued.
///
/// # Errors
/// 404 when there is none.
pub fn body(
    tx: &impl Tx,
    organization: OrganizationId,
    id: InviteId,
    links: Option<&Links>,
    now: Timestamp,
) -> Result<Versioned> {
    body::created(tx, (organization, id), links, now)
}

impl Terms {
    /// Whether this member is shown the link of an invite. Where mails take invites to their addresses, only
    /// those who run the organization let somebody in who did not prove the address.
    pub fn shows_link_to(&self, caller: &Membership) -> bool {
        !self.sends_mail || caller.level.administers()
    }
}
