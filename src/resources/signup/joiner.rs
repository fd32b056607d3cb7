//! Decides who may accept an invite, and with which account.

use crate::error::{Error, Result};
use crate::ids::UserId;
use crate::resources::domains;
use crate::resources::invites::{Invite, TokenKind};
use crate::resources::members;
use crate::resources::users::{self, UnverifiedAccount};
use crate::store::Tx;
use crate::time::Timestamp;

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
    tx: &impl Tx,
    invite: &Invite,
    access: Option<UserId>,
    proof: Option<TokenKind>,
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
            Some(TokenKind::Address) if account.is_active => users::find_unproven(tx, account.id)?,
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
    tx: &impl Tx,
    invite: &Invite,
    proof: Option<TokenKind>,
    sends_mail: bool,
) -> Result<()> {
    if proof != Some(TokenKind::Link) {
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
