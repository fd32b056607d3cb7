//! Signing up: accepting an invite, as somebody new or with an account (decisions §4, Accepting; facts-org §3.4).

pub mod body;
pub mod http;
mod input;
mod joiner;
mod letters;
mod takeover;

use crate::access::key::MadeKey;
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{InviteId, LetterId, OrganizationId, UserId};
use crate::json::Object;
use crate::mail::outbox::{self, About};
use crate::resources::api_keys;
use crate::resources::invites::{self, Invite, Links, Proof};
use crate::resources::members::{self, JoinedBy, Membership, MembershipOrigin};
use crate::resources::organizations::Organization;
use crate::resources::projects::grants;
use crate::resources::users::{self, LinkAccount, User};
use crate::secret::Draw;
use crate::store::{Tx, WriteTx};
use crate::time::Timestamp;

use joiner::{Joiner, account_exists, require_open};

pub use input::{Acceptance, SignupFields};
pub use letters::Letters;
pub use takeover::UnprovenAccount;

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
    sends_mail: bool,
    now: Timestamp,
) -> Result<Vec<u8>> {
    let (invite, proof) = match token {
        Some(token) => {
            let (invite, proof) = get_by_token(tx, links, id, token)?;
            (invite, Some(proof))
        }
        None => (get(tx, id)?, None),
    };
    let unproven_account = match require_open(tx, &invite, visitor, proof, sends_mail, now)? {
        Joiner::TakesOver(account) => Some(UnprovenAccount::of(tx, account)?),
        Joiner::Newcomer | Joiner::Account(_) => None,
    };
    let organization: Organization = tx.get(&invite.head.organization)?;
    let mut out = Vec::with_capacity(256);
    Object::begin(&mut out)
        .field("id", &invite.head.id)?
        .field("target_email", &invite.shown.target_email)?
        .field("first_name", &invite.shown.first_name)?
        .field("organization_name", &organization.shown.name)?
        .field("unproven_account", &unproven_account)?
        .end();
    Ok(out)
}

/// What holds for everybody who joins now.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Whether there is a mail server to hand mails to.
    pub sends_mail: bool,
    /// How many members an organization may have.
    pub members: u64,
    /// To how many organizations a user may belong and join another.
    pub organizations: u64,
}

/// An acceptance that would be taken, as things are.
pub struct Acceptable {
    invite: Invite,
    proof: Proof,
    joiner: Joiner,
}

impl Acceptable {
    /// The organization that the invite leads into, and the account that the acceptance takes over, if it takes one
    /// over.
    pub fn taken_over(&self) -> Option<(OrganizationId, UserId)> {
        match self.joiner {
            Joiner::TakesOver(account) => Some((self.invite.head.organization, account.user)),
            Joiner::Newcomer | Joiner::Account(_) => None,
        }
    }
}

/// Checks whether this acceptance would be taken, as things are. It is asked before a key is made for it, and again
/// in the write that accepts.
///
/// # Errors
/// 400 if the token is wrong or missing, the invite is not for this visitor to accept, the address has an account
/// whose takeover is not asked for, a field of somebody new is no good, or a cap is reached.
pub fn require_acceptable(
    tx: &impl Tx,
    links: &Links,
    terms: Terms,
    sent: &Acceptance,
    visitor: Option<UserId>,
    now: Timestamp,
) -> Result<Acceptable> {
    let (invite, proof) = get_by_token(tx, links, sent.invite, sent.token()?)?;
    let joiner = require_open(tx, &invite, visitor, Some(proof), terms.sends_mail, now)?;
    if matches!(joiner, Joiner::TakesOver(_)) && !sent.takes_over()? {
        return Err(account_exists(&invite));
    }
    if visitor.is_none() {
        sent.new_user(&invite.shown.target_email)?;
        sent.role()?;
    }
    require_room(tx, terms, &invite, joiner)?;
    Ok(Acceptable { invite, proof, joiner })
}

/// Keeps an organization's members, and a user's organizations, within their caps. Every write is held to them; here
/// it is asked before a key is hashed, and before anything ends of an account that is taken over.
fn require_room(tx: &impl Tx, terms: Terms, invite: &Invite, joiner: Joiner) -> Result<()> {
    let Terms { members: most, organizations, .. } = terms;
    if tx.count::<Membership>(&invite.head.organization)? >= most {
        let detail = format!("An organization can have at most {most} members.");
        return Err(Error::limit_reached(detail));
    }
    let Joiner::Account(user) = joiner else { return Ok(()) };
    if tx.count::<Membership>(&user)? >= organizations {
        let detail = format!("A user can belong to at most {organizations} organizations.");
        return Err(Error::limit_reached(detail));
    }
    Ok(())
}

/// Who accepts an invite.
pub enum AcceptedBy {
    /// A user, with a key of theirs.
    User(UserId),
    /// Somebody without an account of their own, who gets this key with it; it was made before the write began.
    Newcomer(MadeKey),
}

impl AcceptedBy {
    /// The user whose key was presented.
    pub fn user(&self) -> Option<UserId> {
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
/// there; the invite is used up. Returns who joined and what is shown. Of an account that is taken over, the caller
/// has ended keys and memberships in the same write.
///
/// # Errors
/// 400 if the invite ended with what was taken over, or the account is a member already.
pub fn accept(
    tx: &mut WriteTx<'_>,
    Acceptable { invite, proof, joiner }: Acceptable,
    sends_mail: bool,
    sent: &Acceptance,
    by: &AcceptedBy,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<(users::Head, Versioned)> {
    let user = match joiner {
        Joiner::Newcomer => create_user(tx, &invite, sent, proof, draw, now)?,
        Joiner::Account(user) | Joiner::TakesOver(LinkAccount { user, .. }) => user,
    };
    let member = join(tx, &invite, user, (joiner, proof), draw, now)?;
    if let Joiner::TakesOver(account) = joiner {
        users::hand_over(tx, user, &sent.new_user(&invite.shown.target_email)?, sent.role()?)?;
        if sends_mail {
            takeover::post(tx, &invite, account, draw, now)?;
        }
    }
    let made = match by {
        AcceptedBy::User(_) => None,
        AcceptedBy::Newcomer(made) => {
            api_keys::create(tx, made.of(user, KEY_LABEL, &KEY_SCOPES), now)?;
            Some(made)
        }
    };
    if proof == Proof::Address {
        users::set_verified(tx, user)?;
    }
    if sends_mail {
        announce(tx, &member, draw, now)?;
    }
    let head = tx.head::<User>(&user)?.ok_or_else(Error::not_found)?;
    Ok((head, body(tx, &member, made)?))
}

/// Only the token of the mail proves the address: of an account that a link makes, that is recorded.
fn create_user(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    sent: &Acceptance,
    proof: Proof,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<UserId> {
    let new = sent.new_user(&invite.shown.target_email)?;
    let mut user = users::create(tx, &new, draw, now)?;
    user.shown.role_at_organization = sent.role()?;
    tx.put(&user)?;
    if proof == Proof::Link {
        let invites::Head { organization, created_by: invited_by, .. } = invite.head;
        tx.put(&LinkAccount { user: user.head.id, organization, invited_by, at: now })?;
    }
    Ok(user.head.id)
}

fn join(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    user: UserId,
    (joiner, proof): (Joiner, Proof),
    draw: &mut Draw,
    now: Timestamp,
) -> Result<Membership> {
    let organization = invite.head.organization;
    let member = members::create(tx, organization, user, invite.head.level, draw, now)?;
    tx.put(&MembershipOrigin {
        organization,
        user,
        membership: member.id,
        invited_by: invite.head.created_by,
        joined_by: match proof {
            Proof::Address => JoinedBy::Mail,
            Proof::Link => JoinedBy::Link,
        },
        took_over: match joiner {
            Joiner::TakesOver(account) => Some(account.at),
            _ => None,
        },
    })?;
    for access in &invite.shown.private_project_access {
        grants::give(tx, organization, access.id, user, access.level.granted(), now)?;
    }
    users::set_current(tx, user, organization, None)?;
    invites::take(tx, organization, &invite.head.address)?.ok_or_else(unknown)?;
    Ok(member)
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
    outbox::announce(tx, [(id, about)], member.organization, now)
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
    Ok(Versioned::new(tx.version::<User>(&member.user)?, json))
}
