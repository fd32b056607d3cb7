//! Signup: accepting an invite, as a new user or with an account. See `docs/spec/signup.md`.

pub mod api;
pub mod http;
mod joiner;
mod letters;

use crate::ids::{InviteId, OutboxMessageId};
use crate::mail::outbox::{self, Notification};
use crate::resources::api_keys::{self, IssuedKey, KeyPermissions};
use crate::resources::invites::{self, Invite, InviteLinks};
use crate::resources::members::{self, JoinedBy, Membership, MembershipOrigin};
use crate::resources::organizations::Organization;
use crate::resources::projects::grants;
use crate::resources::roles;
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, UnverifiedAccount, User};

use api::{FirstKey, InviteOffer, JoinedOrganization, Signup};
use joiner::{Joiner, account_exists, require_open};

pub use api::{Acceptance, SignupFields};
pub use joiner::UnprovenAccount;
pub use letters::InviteMails;

/// Signing up stores records of other resources only.
pub const RECORDS: &[&dyn RegisteredRecord] = &[];

/// Returns the invite with the id in the path. An id that is not a UUID matches no invite.
///
/// # Errors
/// 400 `invalid_input` if the invite does not exist, the same error as for a wrong token.
fn get(tx: &dyn Raw, id: Option<InviteId>) -> Result<Invite> {
    let found = id.map_or(Ok(None), |id| invites::find_by_id(tx, id))?;
    found.ok_or_else(invite_not_found)
}

fn invite_not_found() -> Error {
    Error::invalid("invalid_input", "The provided invite ID is not valid.")
}

/// Returns the invite with the id in the path, if the token is valid. Verifies the token before it reads the invite, so
/// that callers cannot distinguish a missing invite from a wrong token.
fn get_by_token(
    tx: &dyn Raw,
    links: &InviteLinks,
    id: Option<InviteId>,
    token: &str,
) -> Result<(Invite, JoinedBy)> {
    let proof = links.verify(id.unwrap_or(InviteId(uuid::Uuid::nil())), token);
    let proof = proof.ok_or_else(invite_not_found)?;
    Ok((get(tx, id)?, proof))
}

/// Returns the JSON of an invite, for a visitor who may accept it. The token is optional, but must be valid if present.
///
/// # Errors
/// 400 if the invite does not exist or this visitor may not accept it.
pub fn offer(
    tx: &dyn Raw,
    links: &InviteLinks,
    id: Option<InviteId>,
    token: Option<&str>,
    access: Option<UserId>,
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
    let unproven_account = match require_open(tx, &invite, access, proof, sends_mail, now)? {
        Joiner::TakesOver(account) => Some(UnprovenAccount::of(tx, account)?),
        Joiner::Newcomer | Joiner::Account(_) => None,
    };
    let organization: Organization = tx.get(&invite.meta.organization)?;
    let body = InviteOffer {
        id: invite.meta.id,
        target_email: invite.fields.target_email,
        first_name: invite.fields.first_name,
        organization_name: organization.fields.name,
        unproven_account,
    };
    body.to_json(256)
}

/// The configuration that applies to acceptances.
#[derive(Debug, Clone, Copy)]
pub struct SignupConfig {
    /// Whether a mail server is configured.
    pub sends_mail: bool,
    /// The maximum number of members of an organization.
    pub members: u64,
    /// The maximum number of organizations of a user.
    pub organizations: u64,
}

/// An acceptance that passed all checks.
pub struct ValidAcceptance {
    invite: Invite,
    proof: JoinedBy,
    joiner: Joiner,
}

impl ValidAcceptance {
    /// Returns the organization of the invite and the account to take over, if the acceptance takes one over.
    pub fn taken_over(&self) -> Option<(OrganizationId, UserId)> {
        match self.joiner {
            Joiner::TakesOver(account) => Some((self.invite.meta.organization, account.user)),
            Joiner::Newcomer | Joiner::Account(_) => None,
        }
    }
}

/// Checks that this acceptance would succeed. Called before a key is created, and again in the transaction that
/// accepts.
///
/// # Errors
/// 400 if the token is missing or wrong, this visitor may not accept the invite, the address has an account that the
/// request does not take over, a field of a new user is invalid, or a limit is reached.
pub fn require_acceptable(
    tx: &dyn Raw,
    links: &InviteLinks,
    terms: SignupConfig,
    sent: &Acceptance,
    access: Option<UserId>,
    now: Timestamp,
) -> Result<ValidAcceptance> {
    let (invite, proof) = get_by_token(tx, links, sent.invite, sent.token()?)?;
    let joiner = require_open(tx, &invite, access, Some(proof), terms.sends_mail, now)?;
    if matches!(joiner, Joiner::TakesOver(_)) && !sent.takes_over()? {
        return Err(account_exists(&invite));
    }
    if access.is_none() {
        sent.new_user(&invite.fields.target_email)?;
        sent.role()?;
    }
    require_room(tx, terms, &invite, joiner)?;
    Ok(ValidAcceptance { invite, proof, joiner })
}

/// Checks the limits on members of an organization and organizations of a user. Every write enforces them. This check
/// fails earlier: before a key is hashed, and before a takeover deletes anything.
fn require_room(tx: &dyn Raw, terms: SignupConfig, invite: &Invite, joiner: Joiner) -> Result<()> {
    let SignupConfig { members: most, organizations, .. } = terms;
    if tx.count::<Membership>(&invite.meta.organization)? >= most {
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

/// The name of a new user's key.
const KEY_LABEL: &str = "Default";
/// The scopes of a new user's key.
const KEY_SCOPES: [&str; 1] = ["*"];

/// Accepts an invite. The user becomes a member with the level of the invite and its access to projects that still
/// exist; the invite is deleted. Returns the user and the response. `first_key` is for a user without an API key. The
/// caller must have deleted the keys and memberships of an account that is taken over, in the same transaction.
///
/// # Errors
/// 400 if the takeover deleted the invite, or if the account is already a member.
pub fn accept(
    tx: &mut WriteTx<'_>,
    ValidAcceptance { invite, proof, joiner }: ValidAcceptance,
    sends_mail: bool,
    sent: &Acceptance,
    first_key: Option<&IssuedKey>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<(users::Meta, Versioned)> {
    let user = match joiner {
        Joiner::Newcomer => create_user(tx, &invite, sent, proof, rng, now)?,
        Joiner::Account(user) | Joiner::TakesOver(UnverifiedAccount { user, .. }) => user,
    };
    let member = join(tx, &invite, user, (joiner, proof), rng, now)?;
    if let Joiner::TakesOver(account) = joiner {
        users::take_over(tx, user, &sent.new_user(&invite.fields.target_email)?, sent.role()?)?;
        if sends_mail {
            joiner::enqueue_notice(tx, &invite, account, rng, now)?;
        }
    }
    if let Some(key) = first_key {
        api_keys::create(tx, key, KEY_LABEL, KeyPermissions::all_of(user)?, now)?;
    }
    if proof == JoinedBy::Mail {
        users::set_verified(tx, user)?;
    }
    if sends_mail {
        announce(tx, &member, rng, now)?;
    }
    let meta = tx.meta::<User>(&user)?.ok_or_else(Error::not_found)?;
    Ok((meta, body(tx, &member, first_key)?))
}

/// Creates the user. Only the token of the mail proves the address, so an account created by a link is recorded as
/// such.
fn create_user(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    sent: &Acceptance,
    proof: JoinedBy,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<UserId> {
    let new = sent.new_user(&invite.fields.target_email)?;
    let mut user = users::create(tx, &new, rng, now)?;
    user.fields.role_at_organization = sent.role()?;
    tx.put(&user)?;
    if proof == JoinedBy::Link {
        let invites::Meta { organization, created_by: invited_by, .. } = invite.meta;
        tx.put(&UnverifiedAccount { user: user.meta.id, organization, invited_by, at: now })?;
    }
    Ok(user.meta.id)
}

fn join(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    user: UserId,
    (joiner, proof): (Joiner, JoinedBy),
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<Membership> {
    let organization = invite.meta.organization;
    let member = members::create(tx, organization, user, invite.meta.level, rng, now)?;
    tx.log_about::<Membership>(&(organization, user));
    tx.put(&MembershipOrigin {
        organization,
        user,
        membership: member.id,
        invited_by: invite.meta.created_by,
        joined_by: proof,
        took_over: match joiner {
            Joiner::TakesOver(account) => Some(account.at),
            _ => None,
        },
    })?;
    roles::give_default(tx, &member, rng, now)?;
    for access in &invite.fields.private_project_access {
        grants::raise(tx, organization, access.id, user, access.level.granted, now)?;
    }
    users::set_current_tenant(tx, user, organization, None)?;
    invites::take(tx, organization, &invite.meta.address)?.ok_or_else(invite_not_found)?;
    Ok(member)
}

/// Queues the mails to the organization's admins and owners about a new member, if the organization enabled them.
fn announce(
    tx: &mut WriteTx<'_>,
    member: &Membership,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let organization: Organization = tx.get(&member.organization)?;
    if !organization.fields.is_member_join_email_enabled {
        return Ok(());
    }
    let (id, about) = (OutboxMessageId(rng.uuid(now)), Notification::Joining { user: member.user });
    outbox::enqueue_announcements(tx, [(id, about)], member.organization, now)
}

fn body(tx: &dyn Raw, member: &Membership, first_key: Option<&IssuedKey>) -> Result<Versioned> {
    let Organization { fields, .. } = tx.get(&member.organization)?;
    let read = |row: Row<'_, User>| Ok((row.version, row.fields.to_vec()));
    let (version, user) = tx.view(&member.user, read)?.ok_or_else(Error::not_found)?;
    let body = Signup {
        user: JsonText::new(&user),
        organization: JoinedOrganization { id: fields.id, name: fields.name },
        personal_api_key: first_key.map(|key| FirstKey {
            id: key.id,
            value: &key.value,
            label: KEY_LABEL,
            scopes: &KEY_SCOPES,
        }),
    };
    Ok(Versioned::new(version, body.to_json(1024)?))
}
