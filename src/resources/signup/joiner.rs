//! Who may accept an invite, and as whom.

use crate::error::{Error, Result};
use crate::ids::UserId;
use crate::resources::domains;
use crate::resources::invites::{Invite, Proof};
use crate::resources::members;
use crate::resources::users::{self, LinkAccount};
use crate::store::Tx;
use crate::time::Timestamp;

/// Who somebody becomes who accepts an invite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joiner {
    /// Somebody without an account.
    Newcomer,
    /// The account whose key was presented.
    Account(UserId),
    /// Somebody who proved the address of an account that only a link made: they take it over.
    TakesOver(LinkAccount),
}

/// Lets an invite be accepted by a visitor: the account whose address it is for, or nobody in particular
/// where no account binds that address; in the order of facts-org §3.4.
///
/// # Errors
/// 400 `invalid_recipient`, `expired`, `account_exists`, `user_already_member` or `mail_required`.
pub(super) fn require_open(
    tx: &impl Tx,
    invite: &Invite,
    visitor: Option<UserId>,
    proof: Option<Proof>,
    sends_mail: bool,
    now: Timestamp,
) -> Result<Joiner> {
    let account = users::find_by_email(tx, &invite.head.address)?.map(|user| user.head);
    if visitor.is_some() && visitor != account.as_ref().map(|user| user.id) {
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
    let Some(account) = account else {
        require_linkable(tx, invite, proof, sends_mail)?;
        return Ok(Joiner::Newcomer);
    };
    if visitor.is_none() {
        // What the operator deactivated stays so, whoever owns the address.
        let unproven = match proof {
            Some(Proof::Address) if account.is_active => users::find_unproven(tx, account.id)?,
            _ => None,
        };
        return unproven.map(Joiner::TakesOver).ok_or_else(|| account_exists(invite));
    }
    if members::find(tx, invite.head.organization, account.id)?.is_some() {
        return Err(Error::invalid(
            "user_already_member",
            "You already are a member of this organization.",
        ));
    }
    Ok(Joiner::Account(account.id))
}

pub(super) fn account_exists(invite: &Invite) -> Error {
    Error::invalid("account_exists", format!("/login?next=/signup/{}", invite.head.id))
}

/// Lets no link make an account under a domain that another organization proved to be its own. The refusal does
/// not say so: whose domain it is, is not for whoever holds a link to know.
fn require_linkable(
    tx: &impl Tx,
    invite: &Invite,
    proof: Option<Proof>,
    sends_mail: bool,
) -> Result<()> {
    if proof != Some(Proof::Link) {
        return Ok(());
    }
    match domains::holder_of(tx, &invite.shown.target_email)? {
        Some(holder) if holder != invite.head.organization => {
            let detail = if sends_mail { MAIL_REQUIRED } else { OPERATOR_REQUIRED };
            Err(Error::invalid("mail_required", detail))
        }
        _ => Ok(()),
    }
}

/// Why a link makes no account if the service sends mails.
const MAIL_REQUIRED: &str = "Accept this invite by the link in the mail to its address.";
/// Why it makes none if the service sends no mails.
const OPERATOR_REQUIRED: &str =
    "This address needs an account. This server sends no mails, so ask its operator to create one.";
