//! Invites to an organization. See `docs/spec/invites.md`.

pub mod api;
pub mod http;
mod links;
mod mail;
mod project_access;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ids::{InviteId, made_at};
use crate::mail::outbox::{self, Notification};
use crate::resources::members::{self, Level, Membership};
use crate::resources::organizations::Organization;
use crate::resources::shared::prelude::*;
use crate::resources::users;

pub use api::{InviteFields, NewInvite, RECORDS, list};
pub use links::InviteLinks;
pub use mail::{InviteMail, MailService, list_mails, mail_body, record_mail};
use project_access::GrantedLevel;
pub use project_access::ProjectAccess;

/// The organization and the id of an invite.
pub type InviteKey = (OrganizationId, InviteId);

/// An invite.
pub type Invite = RecordOf<Meta, Fields>;

/// The fields of an invite that access rules need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The id of the invite.
    pub id: InviteId,
    /// The organization that the invite is for.
    pub organization: OrganizationId,
    /// The number of the invite in order of creation, which sorts lists.
    pub serial: u64,
    /// The invited address in lower case.
    pub address: String,
    /// The level of the new member.
    pub level: Level,
    /// The member that created the invite.
    pub created_by: Option<UserId>,
    /// When the invite expires.
    pub expires_at: Timestamp,
}

/// The stored fields of the JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = InviteFixed)]
pub struct Fields {
    /// The id of the invite.
    pub id: InviteId,
    /// The invited address as entered, with the domain in lower case.
    #[schema(format = IdnEmail)]
    pub target_email: String,
    /// The name to greet the person with.
    pub first_name: String,
    /// Whether a mail was queued.
    pub emailing_attempt_made: bool,
    /// The level of the new member.
    pub level: Level,
    /// When the invite was created.
    pub created_at: Timestamp,
    /// Same as `created_at`: an invite is replaced, never updated.
    pub updated_at: Timestamp,
    /// The inviter's message.
    pub message: Option<String>,
    /// The private projects that the new member may access.
    pub private_project_access: Vec<ProjectAccess>,
    /// Whether the inviter asked for a mail.
    pub send_email: bool,
    /// Whether the invite also grants what a pending invite for the same address granted.
    pub combine_pending_invites: bool,
}

/// The invite with an id. Ids are unique over all organizations.
pub const BY_ID: Index<Invite, InviteId> =
    Index::unique(Table::InvitesById, |invite| Some(invite.meta.id));
/// The invite for an address. An organization has at most one for each address.
pub const BY_ADDRESS: Index<Invite, (OrganizationId, String)> =
    Index::unique(Table::InvitesByAddress, |invite| {
        Some((invite.meta.organization, invite.meta.address.clone()))
    });
/// The invites of an organization, oldest first.
pub const BY_SERIAL: Index<Invite, (OrganizationId, u64)> =
    Index::many(Table::InvitesBySerial, |invite| {
        Some((invite.meta.organization, invite.meta.serial))
    });

impl_record!(Invite {
    table: Invites,
    key: |invite| -> InviteKey { (invite.meta.organization, invite.meta.id) },
    parts: meta: Meta, fields: Fields,
    projection: |meta, fields| Meta { level: fields.level, ..meta.clone() },
    indexes: [&BY_ID, &BY_ADDRESS, &BY_SERIAL],
    counts: [|invite| Some(invite.meta.organization.encoded())],
    owner: |invite, _| Ok(Some(invite.meta.organization.owner())),
    references: |invite| [Reference::to::<Organization>(&invite.meta.organization)],
});

impl Meta {
    /// Returns whether the invite has expired. One that was created while the clock stood ahead is no longer valid, although
    /// its end is far away.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        !self.expires_at.is_end_of_current_since(made_at(self.id.0), now)
    }

    /// Returns whether the end of the invite has passed. While the clock stands behind, an expired invite may become valid
    /// again, so it is not yet deleted, and its mail waits.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }
}

/// The configuration that applies to new invites.
#[derive(Debug, Clone, Copy)]
pub struct InviteConfig {
    /// How long an invite can be accepted.
    pub ttl: Duration,
    /// Whether a mail server is configured.
    pub sends_mail: bool,
    /// The maximum number of pending invites of an organization.
    pub max_pending: u64,
}

/// Creates an invite. It replaces any other invite for the same address in the organization.
///
/// # Errors
/// 403 for a level above the caller's own. 400 for an invalid field, if the address belongs to a member, or if the
/// organization has the maximum number of pending invites.
pub fn create(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    terms: InviteConfig,
    new: &NewInvite,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<InviteId> {
    new.require_level_within(caller)?;
    let fields = new.fields.get()?;
    require_grantable(tx, caller, fields)?;
    put(tx, caller, terms, fields, rng, now)
}

/// Creates all of these invites or none.
///
/// # Errors
/// The same as [`create`], but a 400 is reported at `<index>__<field>`. The levels of all invites are checked before
/// any other field.
pub fn create_all(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    terms: InviteConfig,
    new: &Result<Vec<NewInvite>>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let new = new.as_deref().map_err(Clone::clone)?;
    new.iter().try_for_each(|new| new.require_level_within(caller))?;
    let mut all = Vec::with_capacity(new.len());
    for (index, new) in new.iter().enumerate() {
        let checked = new.fields.get().and_then(|fields| {
            require_grantable(tx, caller, fields)?;
            Ok(fields)
        });
        all.push(checked.map_err(|error| api::at_index(index, error))?);
    }
    for (index, fields) in all.into_iter().enumerate() {
        put(tx, caller, terms, fields, rng, now).map_err(|error| api::at_index(index, error))?;
    }
    Ok(())
}

fn require_grantable(tx: &dyn Raw, caller: &Membership, fields: &InviteFields) -> Result<()> {
    let sent = fields.private_project_access.clone().value().unwrap_or_default();
    project_access::require_grantable(tx, caller, &sent)
}

fn put(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    terms: InviteConfig,
    fields: &InviteFields,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<InviteId> {
    let organization = caller.organization;
    // Lists do not show bots, so a bot must not become a member.
    if members::is_bot(&fields.target_email) {
        return Err(Error::field("target_email", "invalid_input", "Enter a valid email address."));
    }
    if let Some(user) = users::find_by_email(tx, &fields.target_email)?
        && members::find(tx, organization, user.meta.id)?.is_some()
    {
        return Err(members::already_member());
    }
    let id = InviteId(rng.uuid(now));
    let shown = api::fields_of(fields.clone(), id, terms.sends_mail, now);
    let mut invite = Invite {
        meta: Meta {
            id,
            organization,
            serial: tx.next_number(Table::Invites)?,
            address: shown.target_email.to_lowercase(),
            level: shown.level,
            created_by: Some(caller.user),
            expires_at: now.plus(terms.ttl),
        },
        fields: shown,
    };
    let replaced = take(tx, organization, &invite.meta.address)?;
    require_room(tx, organization, terms.max_pending, now)?;
    if let Some(replaced) = replaced
        && invite.fields.combine_pending_invites
        && !replaced.meta.is_expired(now)
    {
        combine(tx, caller, &mut invite, &replaced)?;
    }
    if invite.fields.emailing_attempt_made {
        let to = invite.fields.target_email.clone();
        let about = Notification::Invite { invite: id, to, by: caller.user };
        outbox::require_room(tx, organization)?;
        outbox::enqueue(tx, mail::outbox_id(id), organization, about, now)?;
    }
    tx.put(&invite)?;
    Ok(id)
}

/// Adds what the pending invite granted to `invite`: the higher level, and the higher level on each project, up to what
/// the caller may grant.
fn combine(tx: &dyn Raw, caller: &Membership, invite: &mut Invite, pending: &Invite) -> Result<()> {
    invite.fields.level = invite.fields.level.max(pending.fields.level.min(caller.level));
    let mut highest = BTreeMap::new();
    let inherited =
        project_access::limit_to_grantable(tx, caller, &pending.fields.private_project_access)?;
    for ProjectAccess { id, level } in
        inherited.into_iter().chain(invite.fields.private_project_access.drain(..))
    {
        let known = highest.entry(id).or_insert(level.granted);
        *known = (*known).max(level.granted);
    }
    invite.fields.private_project_access = highest
        .into_iter()
        .map(|(id, level)| ProjectAccess { id, level: GrantedLevel::word(level) })
        .collect();
    Ok(())
}

/// Deletes an invite and its unsent mail.
///
/// # Errors
/// 404 if the invite does not exist.
pub fn delete(tx: &mut WriteTx<'_>, key: InviteKey) -> Result<()> {
    tx.remove::<Invite>(&key)?.ok_or_else(Error::not_found)?;
    mail::withdraw(tx, key)
}

/// Deletes the invite for an address and its unsent mail. Returns the invite.
pub fn take(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    address: &str,
) -> Result<Option<Invite>> {
    let Some(key) = tx.lookup(&BY_ADDRESS, &(organization, address.to_owned()))? else {
        return Ok(None);
    };
    mail::withdraw(tx, key)?;
    tx.remove::<Invite>(&key)
}

/// Returns the invite with this id in any organization, if it is valid. An invite becomes invalid when its organization
/// is deleted, or when its creator is no longer a member or may no longer grant what it grants. Otherwise a removed
/// member could rejoin with an invite of their own.
pub fn find_by_id(tx: &dyn Raw, id: InviteId) -> Result<Option<Invite>> {
    let Some(key) = tx.lookup(&BY_ID, &id)? else { return Ok(None) };
    if !tx.exists::<Organization>(&key.0)? {
        return Ok(None);
    }
    let invite: Option<Invite> = tx.find(&key)?;
    match invite {
        Some(invite) if is_valid(tx, &invite)? => Ok(Some(invite)),
        _ => Ok(None),
    }
}

fn is_valid(tx: &dyn Raw, invite: &Invite) -> Result<bool> {
    let Some(inviter) = invite.meta.created_by else { return Ok(true) };
    let inviter = members::find_listed(tx, invite.meta.organization, inviter)?;
    let Some(inviter) = inviter.filter(|inviter| inviter.level >= invite.meta.level) else {
        return Ok(false);
    };
    project_access::can_still_grant(tx, &inviter, &invite.fields.private_project_access)
}

impl InviteConfig {
    /// Returns whether this member may see the link of an invite. If the server sends mail, only admins and owners may
    /// let users join without proof of their address.
    pub fn can_see_link(&self, caller: &Membership) -> bool {
        !self.sends_mail || caller.level.is_admin()
    }
}

/// The number of oldest invites that are searched for expired ones.
const MAX_SCANNED: usize = 100;

/// Checks that an organization may have one more invite. If the limit is reached, deletes the oldest expired invites,
/// which lists show until then.
///
/// # Errors
/// 400 `limit_reached` if the organization has the maximum number of pending invites.
fn require_room(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    most: u64,
    now: Timestamp,
) -> Result<()> {
    if tx.count::<Invite>(&organization)? < most {
        return Ok(());
    }
    let oldest = Window { offset: 0, limit: MAX_SCANNED, order: Order::Ascending };
    let mut expired = Vec::new();
    tx.walk(&BY_SERIAL, &organization, oldest, |row| {
        expired.extend(row.meta.has_ended(now).then_some(row.meta.id));
        Ok(())
    })?;
    for id in expired {
        delete(tx, (organization, id))?;
        if tx.count::<Invite>(&organization)? < most {
            return Ok(());
        }
    }
    Err(Error::limit_reached(format!(
        "An organization can have at most {most} pending invites. Delete one, or wait until one is accepted or expires."
    )))
}

/// Deletes up to `limit` invites that a user created in an organization, with their unsent mails. Returns how many it
/// deleted.
fn delete_created_by(
    tx: &mut WriteTx<'_>,
    (organization, user): (OrganizationId, UserId),
    limit: usize,
) -> Result<usize> {
    let window = Window { offset: 0, limit, order: Order::Ascending };
    let is_theirs = |invite: &Meta| invite.created_by == Some(user);
    let mut created = Vec::new();
    tx.walk_where(&BY_SERIAL, &organization, window, is_theirs, |row| {
        created.push(row.meta.id);
        Ok(())
    })?;
    created.iter().try_for_each(|id| delete(tx, (organization, *id)))?;
    Ok(created.len())
}
