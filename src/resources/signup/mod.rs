//! Signing up: accepting an invite, as somebody new or with an account (decisions §4, Accepting; facts-org §3.4).

pub mod body;
pub mod http;
mod input;
mod letters;

use crate::access::key::MadeKey;
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{InviteId, LetterId, UserId};
use crate::json::Object;
use crate::mail::outbox::{self, About};
use crate::resources::api_keys;
use crate::resources::invites::{self, Invite, Links, Proof};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::projects::grants;
use crate::resources::users::{self, User};
use crate::secret::Draw;
use crate::store::{Tx, WriteTx};
use crate::time::Timestamp;

pub use input::{Acceptance, SignupFields};
pub use letters::Letters;

/// The invite that a path names. A text that is no id names none.
///
/// # Errors
/// 400 `invalid_input` where there is none, in the words for a wrong token.
fn get(tx: &impl Tx, id: Option<InviteId>) -> Result<Invite> {
    let found = match id {
        Some(id) => invites::find_by_id(tx, id)?,
        None => None,
    };
    found.ok_or_else(unknown)
}

fn unknown() -> Error {
    Error::invalid("invalid_input", "The provided invite ID is not valid.")
}

/// The invite that a path names, for whoever presents its token. A wrong token is refused before anything is
/// looked up, so nothing tells an invite that is not there from one whose token is wrong.
fn get_by_token(
    tx: &impl Tx,
    links: &Links,
    id: Option<InviteId>,
    token: &str,
) -> Result<(Invite, Proof)> {
    let proof = links.proof(id.unwrap_or(InviteId(uuid::Uuid::nil())), token);
    let proof = proof.ok_or_else(unknown)?;
    Ok((get(tx, id)?, proof))
}

/// Lets an invite be accepted by a visitor: the account whose address it is for, or nobody in particular
/// where there is no such account; in the order of facts-org §3.4.
///
/// # Errors
/// 400 `invalid_recipient`, `expired`, `account_exists` or `user_already_member`.
fn require_open(
    tx: &impl Tx,
    invite: &Invite,
    visitor: Option<UserId>,
    now: Timestamp,
) -> Result<()> {
    let account = users::find_by_email(tx, &invite.head.address)?.map(|user| user.head.id);
    if visitor.is_some() && visitor != account {
        return Err(Error::invalid(
            "invalid_recipient",
            "This invite is intended for another email address.",
        ));
    }
    if invite.head.is_expired(now) {
        return Err(Error::invalid(
            "expired",
            "This invite has expired. Please ask your admin for a new one.",
        ));
    }
    let Some(account) = account else { return Ok(()) };
    if visitor.is_none() {
        let id = invite.head.id;
        return Err(Error::invalid("account_exists", format!("/login?next=/signup/{id}")));
    }
    if members::find(tx, invite.head.organization, account)?.is_some() {
        return Err(Error::invalid(
            "user_already_member",
            "You already are a member of this organization.",
        ));
    }
    Ok(())
}

/// What an invite offers, for a visitor who could accept it. A token need not be presented; where one is,
/// it has to be right.
///
/// # Errors
/// 400 where there is no such invite, or it is not for this visitor to accept.
pub fn offer(
    tx: &impl Tx,
    links: &Links,
    id: Option<InviteId>,
    token: Option<&str>,
    visitor: Option<UserId>,
    now: Timestamp,
) -> Result<Vec<u8>> {
    let invite = match token {
        Some(token) => get_by_token(tx, links, id, token)?.0,
        None => get(tx, id)?,
    };
    require_open(tx, &invite, visitor, now)?;
    let organization: Organization = tx.get(&invite.head.organization)?;
    let mut out = Vec::with_capacity(256);
    Object::begin(&mut out)
        .field("id", &invite.head.id)?
        .field("target_email", &invite.shown.target_email)?
        .field("first_name", &invite.shown.first_name)?
        .field("organization_name", &organization.shown.name)?
        .end();
    Ok(out)
}

/// Whether this acceptance would be taken, as things are: asked before a key is made for it.
///
/// # Errors
/// As [`accept`].
pub fn require_acceptable(
    tx: &impl Tx,
    links: &Links,
    sent: &Acceptance,
    visitor: Option<UserId>,
    now: Timestamp,
) -> Result<()> {
    let (invite, _) = get_by_token(tx, links, sent.invite, sent.token()?)?;
    require_open(tx, &invite, visitor, now)?;
    if visitor.is_none() {
        sent.new_user(&invite.shown.target_email)?;
    }
    Ok(())
}

/// Who accepts an invite.
pub enum AcceptedBy {
    /// A user, with a key of theirs.
    User(UserId),
    /// Somebody without an account, who gets this key with it; it was made before the write began.
    Newcomer(MadeKey),
}

impl AcceptedBy {
    fn user(&self) -> Option<UserId> {
        match self {
            Self::User(user) => Some(*user),
            Self::Newcomer(_) => None,
        }
    }
}

/// The label of a newcomer's key.
const KEY_LABEL: &str = "Default";
/// Its scopes.
const KEY_SCOPES: [&str; 1] = ["*"];

/// Accepts an invite: whoever accepts it becomes a member at its level, with its grants on projects that are still
/// there; the invite is used up. Answers who joined and what is shown.
///
/// # Errors
/// 400 where the token is wrong or missing, the invite is not for this visitor to accept, or a field of
/// somebody new is no good.
pub fn accept(
    tx: &mut WriteTx<'_>,
    links: &Links,
    sent: &Acceptance,
    by: &AcceptedBy,
    sends_mail: bool,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<(users::Head, Versioned)> {
    let (invite, proof) = get_by_token(tx, links, sent.invite, sent.token()?)?;
    require_open(tx, &invite, by.user(), now)?;
    let (user, made) = match by {
        AcceptedBy::User(user) => (*user, None),
        AcceptedBy::Newcomer(made) => {
            let user = create_user(tx, &invite, sent, draw, now)?;
            api_keys::create(tx, made.of(user, KEY_LABEL, &KEY_SCOPES), now)?;
            (user, Some(made))
        }
    };
    let member = join(tx, &invite, user, draw, now)?;
    set_verified(tx, user, proof)?;
    if sends_mail {
        announce(tx, &member, draw, now)?;
    }
    let head = tx.head::<User>(&user)?.ok_or_else(Error::not_found)?;
    Ok((head, body(tx, &member, made)?))
}

fn create_user(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    sent: &Acceptance,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<UserId> {
    let new = sent.new_user(&invite.shown.target_email)?;
    let mut user = users::create(tx, &new, draw, now)?;
    user.shown.role_at_organization = sent.role()?;
    tx.put(&user)?;
    Ok(user.head.id)
}

fn join(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    user: UserId,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<Membership> {
    let organization = invite.head.organization;
    let member = members::create(tx, organization, user, invite.head.level, draw, now)?;
    for access in &invite.shown.private_project_access {
        grants::give(tx, organization, access.id, user, access.level.granted(), now)?;
    }
    users::set_current(tx, user, organization, None)?;
    invites::take(tx, organization, &invite.head.address)?;
    Ok(member)
}

/// Only the token of the mail proves the address.
fn set_verified(tx: &mut WriteTx<'_>, user: UserId, proof: Proof) -> Result<()> {
    if proof == Proof::Address {
        let mut user: User = tx.get(&user)?;
        user.shown.is_email_verified = true;
        tx.put(&user)?;
    }
    Ok(())
}

/// Has the organization's admins and owners told who joined, where they want to be.
fn announce(
    tx: &mut WriteTx<'_>,
    member: &Membership,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<()> {
    let organization: Organization = tx.get(&member.organization)?;
    if !organization.shown.is_member_join_email_enabled {
        return Ok(());
    }
    let (id, about) = (LetterId(draw.uuid(now)), About::Joining { user: member.user });
    let organization = member.organization;
    if !outbox::post_announcement(tx, id, organization, about, now)? {
        tracing::warn!(%organization, dropped = 1, "announcements were dropped: too many mails of the organization wait");
    }
    Ok(())
}

fn body(tx: &impl Tx, member: &Membership, made: Option<&MadeKey>) -> Result<Versioned> {
    let organization: Organization = tx.get(&member.organization)?;
    let user: User = tx.get(&member.user)?;
    let key = made.map(|made| made.shown(KEY_LABEL, &KEY_SCOPES));
    let mut json = Vec::with_capacity(1024);
    Object::begin(&mut json)
        .splice(&serde_json::to_vec(&user.shown).map_err(Error::internal)?)
        .with("organization", |out| {
            Object::begin(out)
                .field("id", &organization.shown.id)?
                .field("name", &organization.shown.name)?
                .end();
            Ok(())
        })?
        .raw("redirect_url", b"\"/\"")
        .field("personal_api_key", &key)?
        .end();
    Ok(Versioned { version: tx.version::<User>(&member.user)?, json })
}
