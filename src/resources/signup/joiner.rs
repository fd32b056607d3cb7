//! Decides who may accept an invite, and with which account; and the takeover of an account that was created by a link:
//! what it deletes, and the mail that confirms it.

use crate::ids::OutboxMessageId;
use crate::mail::outbox::{self, Notification};
use crate::resources::invites::Invite;
use crate::resources::members::{self, JoinedBy};
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, UnverifiedAccount, User};
use crate::resources::{api_keys, domains};

/// The account with which an invite is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joiner {
    /// A new user without an account.
    Newcomer,
    /// The account of the key in the request.
    Account(UserId),
    /// An account that was created by a link. The user proved its address and takes it over.
    TakesOver(UnverifiedAccount),
}

/// Checks that the visitor may accept the invite: with the account that has the invite's address, or without an account
/// if no account owns that address. The checks run in PostHog's order, see `docs/spec/signup.md`.
///
/// # Errors
/// 400 `invalid_recipient`, `expired`, `account_exists`, `user_already_member` or `mail_required`.
pub(super) fn require_open(
    tx: &dyn Raw,
    invite: &Invite,
    access: Option<UserId>,
    proof: Option<JoinedBy>,
    sends_mail: bool,
    now: Timestamp,
) -> Result<Joiner> {
    let account = users::find_by_email(tx, &invite.meta.address)?.map(|user| user.meta);
    if access.is_some() && access != account.as_ref().map(|user| user.id) {
        return Err(Error::invalid(
            "invalid_recipient",
            "This invite is intended for another email address.",
        ));
    }
    if invite.meta.is_expired(now) {
        return Err(Error::invalid(
            "expired",
            "This invite has expired. Please ask your admin for a new one.",
        ));
    }
    let Some(account) = account else {
        require_link_allowed(tx, invite, proof, sends_mail)?;
        return Ok(Joiner::Newcomer);
    };
    if access.is_none() {
        // A proven address does not reactivate an account that the operator deactivated.
        let unproven = match proof {
            Some(JoinedBy::Mail) if account.is_active => users::find_unproven(tx, account.id)?,
            _ => None,
        };
        return unproven.map(Joiner::TakesOver).ok_or_else(|| account_exists(invite));
    }
    if members::find(tx, invite.meta.organization, account.id)?.is_some() {
        return Err(Error::invalid(
            "user_already_member",
            "You already are a member of this organization.",
        ));
    }
    Ok(Joiner::Account(account.id))
}

pub(super) fn account_exists(invite: &Invite) -> Error {
    Error::invalid("account_exists", format!("/login?next=/signup/{}", invite.meta.id))
}

/// Checks that a link may create an account with this address: not if another organization has verified its domain. The
/// error does not say so, because the owner of a domain is not public.
fn require_link_allowed(
    tx: &dyn Raw,
    invite: &Invite,
    proof: Option<JoinedBy>,
    sends_mail: bool,
) -> Result<()> {
    if proof != Some(JoinedBy::Link) {
        return Ok(());
    }
    match domains::owner_of(tx, &invite.fields.target_email)? {
        Some(holder) if holder != invite.meta.organization => {
            let detail = if sends_mail { MAIL_REQUIRED } else { OPERATOR_REQUIRED };
            Err(Error::invalid("mail_required", detail))
        }
        _ => Ok(()),
    }
}

/// The error for a link if the server sends mail.
const MAIL_REQUIRED: &str = "Accept this invite with the link in the mail to its address.";
/// The error for a link if the server does not send mail.
const OPERATOR_REQUIRED: &str =
    "This address needs an account. The server does not send mail, so ask its operator for one.";

/// An account that was created with the invite's address by a link, and what taking it over deletes.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnprovenAccount {
    /// When the account was created.
    created_at: Timestamp,
    /// The number of its API keys. Taking over the account revokes them.
    api_keys: usize,
    /// The number of organizations that it belongs to. Taking over the account removes it from them.
    organizations: usize,
    /// The number of organizations of which it is the only member. Taking over the account deletes them and everything
    /// in them.
    organizations_deleted: usize,
}

impl UnprovenAccount {
    pub(super) fn of(tx: &dyn Raw, account: UnverifiedAccount) -> Result<Self> {
        let memberships = members::organizations_of(tx, account.user)?;
        let mut organizations_deleted = 0;
        for member in &memberships {
            organizations_deleted += usize::from(members::is_last_member(tx, member)?);
        }
        Ok(Self {
            created_at: account.at,
            api_keys: tx.keys(&api_keys::BY_USER, &account.user, usize::MAX)?.len(),
            organizations: memberships.len(),
            organizations_deleted,
        })
    }
}

/// Queues the mail that confirms the takeover to the owner of the address. Ignores the limit on queued mails of the
/// organization, because an accepted invite queues at most one.
pub(super) fn enqueue_notice(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    account: UnverifiedAccount,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let to = tx.get::<User>(&account.user)?.fields.email;
    let about = Notification::TakenOver { user: account.user, to, since: account.at };
    outbox::enqueue(tx, OutboxMessageId(rng.uuid(now)), invite.meta.organization, about, now)
}
