//! What a browser without a session signs in with. A sign-in link's code creates one console session of one user, once and
//! within minutes. So does the code of a sign-in mail, but only in the browser that asked for it.
//!
//! A request for an address that gets no mail is stored too, without a user. So it has the same responses as any other.

use std::time::Duration;

use crate::resources::domains;
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, User};
use crate::store::Snapshot;

use super::session_text::SecretDigest;
use super::{NewSession, VerifiedSession, create};

/// The lifetime of a sign-in link.
const LINK_LIFETIME: Duration = Duration::from_mins(5);
/// The maximum number of sign-in links of a user. A further one replaces the one that expires first.
const MAX_LINKS: usize = 5;

/// A link that creates a console session once. The code itself is not stored. Not `Debug`, so that logs cannot contain
/// the digest.
#[derive(Clone, Serialize, Deserialize)]
pub struct SignInLink {
    /// The keyed digest of the code.
    pub code: SecretDigest,
    /// The user of the session.
    pub user: UserId,
    /// Whether the session may see the pages for the operator.
    pub is_operator: bool,
    /// When the link expires.
    pub expires_at: Timestamp,
}

/// The links of a user, those that expire first in front.
pub const LINKS_BY_USER: Index<SignInLink, (UserId, Timestamp)> =
    Index::many(Table::SignInLinksByUser, |link| Some((link.user, link.expires_at)));

impl_record!(SignInLink {
    table: SignInLinks,
    key: |link| -> SecretDigest { link.code },
    indexes: [&LINKS_BY_USER],
    owner: |_, _| Ok(None),
    references: |link| [Reference::to::<User>(&link.user)],
});

/// Creates a link for a user. Returns when it expires.
///
/// # Errors
/// 400 if the user is deactivated, 404 if it does not exist.
pub fn create_link(
    tx: &mut WriteTx<'_>,
    code: SecretDigest,
    user: UserId,
    is_operator: bool,
    now: Timestamp,
) -> Result<Timestamp> {
    if !tx.meta::<User>(&user)?.ok_or_else(Error::not_found)?.is_active {
        return Err(Error::invalid("inactive", "The user is deactivated."));
    }
    let links = tx.keys(&LINKS_BY_USER, &user, usize::MAX)?;
    for link in links.iter().rev().skip(MAX_LINKS - 1) {
        tx.remove::<SignInLink>(link)?;
    }
    let expires_at = now.plus(LINK_LIFETIME);
    tx.put(&SignInLink { code, user, is_operator, expires_at })?;
    Ok(expires_at)
}

/// Returns the user that the link with this code signs in. The link stays valid.
///
/// # Errors
/// 401 with the same text for every reason if the link is not valid.
pub fn find_link(tx: &dyn Raw, code: SecretDigest, now: Timestamp) -> Result<users::Fields> {
    let link = valid_link(tx, code, now)?;
    let user = tx.find::<User>(&link.user)?.filter(|user| user.meta.is_active);
    Ok(user.ok_or_else(invalid_link)?.fields)
}

/// Creates a session from the link with this code, and deletes the link.
///
/// # Errors
/// 401 with the same text for every reason if the link is not valid.
pub fn create_from_link(
    tx: &mut WriteTx<'_>,
    code: SecretDigest,
    new: &NewSession,
    now: Timestamp,
) -> Result<VerifiedSession> {
    let link = valid_link(tx, code, now)?;
    tx.remove::<SignInLink>(&code)?;
    if !tx.meta::<User>(&link.user)?.is_some_and(|user| user.is_active) {
        return Err(invalid_link());
    }
    let SignInLink { user, is_operator, .. } = link;
    create(tx, new, user, None, is_operator, now)
}

fn valid_link(tx: &dyn Raw, code: SecretDigest, now: Timestamp) -> Result<SignInLink> {
    let link = tx
        .meta::<SignInLink>(&code)?
        .filter(|link| link.expires_at.is_end_of_current(LINK_LIFETIME, now));
    link.ok_or_else(invalid_link)
}

fn invalid_link() -> Error {
    Error::authentication_failed_as("The sign-in link is invalid, has expired or was used.")
}

/// The time within which a code signs in.
const CODE_LIFETIME: Duration = Duration::from_mins(10);
/// The number of wrong codes after which a request accepts none.
const MAX_WRONG_CODES: u32 = 5;

/// A browser's request for a sign-in mail. Not `Debug`, so that logs cannot contain the digests.
#[derive(Clone, Serialize, Deserialize)]
pub struct SignInRequest {
    /// The keyed digest of the browser's nonce.
    pub browser: SecretDigest,
    /// The keyed digest of the code.
    pub code: SecretDigest,
    /// The user that gets the code. Nobody gets the code if there is none.
    pub user: Option<UserId>,
    /// When the browser asked.
    pub created_at: Timestamp,
    /// The number of wrong codes so far.
    pub wrong_codes: u32,
}

impl SignInRequest {
    fn is_open(&self, now: Timestamp) -> bool {
        self.created_at.is_begin_of_current(CODE_LIFETIME, now)
            && self.wrong_codes < MAX_WRONG_CODES
    }

    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        self.created_at.plus(CODE_LIFETIME) <= now
    }
}

/// The requests for mails to a user.
pub(super) const REQUESTS_BY_USER: Index<SignInRequest, UserId> =
    Index::many(Table::SignInRequestsByUser, |request| request.user);

impl_record!(SignInRequest {
    table: SignInRequests,
    key: |request| -> SecretDigest { request.browser },
    indexes: [&REQUESTS_BY_USER],
    owner: |_, _| Ok(None),
    references: |request| request.user.iter().map(Reference::to::<User>).collect::<Vec<_>>(),
});

/// A request to store. Its secrets were drawn before the transaction began.
#[derive(Clone)]
pub struct NewSignInRequest {
    /// The keyed digest of the browser's nonce.
    pub browser: SecretDigest,
    /// The keyed digest of the code.
    pub code: SecretDigest,
    /// The address that was entered.
    pub email: String,
    /// Whether the limits allow a mail.
    pub may_send: bool,
}

/// The user that gets a mail.
pub struct MailRecipient {
    /// The user.
    pub user: UserId,
    /// The user's address.
    pub email: String,
    /// When the code expires.
    pub expires_at: Timestamp,
}

/// Returns the user that gets mails at an address. There is none if no active user has the address, if it is not verified, or
/// if its organization demands single sign-on.
pub fn find_recipient(tx: &dyn Raw, email: &str) -> Result<Option<User>> {
    match users::find_by_email(tx, email)? {
        Some(user) if may_sign_in(tx, &user)? => Ok(Some(user)),
        _ => Ok(None),
    }
}

/// Stores a request. Returns the recipient of the mail, or `None` if the limits allow no mail, or nobody gets mails at the
/// address.
pub fn open_request(
    tx: &mut WriteTx<'_>,
    new: &NewSignInRequest,
    now: Timestamp,
) -> Result<Option<MailRecipient>> {
    let recipient = if new.may_send { find_recipient(tx, &new.email)? } else { None };
    tx.put(&SignInRequest {
        browser: new.browser,
        code: new.code,
        user: recipient.as_ref().map(|user| user.meta.id),
        created_at: now,
        wrong_codes: 0,
    })?;
    Ok(recipient.map(|User { meta, fields }| MailRecipient {
        user: meta.id,
        email: fields.email,
        expires_at: now.plus(CODE_LIFETIME),
    }))
}

/// Whether mail may sign a user in. An address counts as verified unless an invite's link created the account: the
/// operator vouches for the addresses of other accounts.
fn may_sign_in(tx: &dyn Raw, user: &User) -> Result<bool> {
    Ok(user.meta.is_active
        && users::find_unproven(tx, user.meta.id)?.is_none()
        && !domains::enforces_sso(tx, &user.fields.email)?)
}

/// Returns whether the browser has a request that accepts codes.
pub fn find_open_request(tx: &dyn Raw, browser: SecretDigest, now: Timestamp) -> Result<bool> {
    Ok(tx.meta::<SignInRequest>(&browser)?.is_some_and(|request| request.is_open(now)))
}

/// Creates a session from a code, and deletes the request. Counts a wrong code. Returns `None` if the code signs nobody
/// in.
pub fn create_from_mail(
    tx: &mut WriteTx<'_>,
    browser: SecretDigest,
    code: SecretDigest,
    new: &NewSession,
    now: Timestamp,
) -> Result<Option<VerifiedSession>> {
    let request = tx.meta::<SignInRequest>(&browser)?.filter(|request| request.is_open(now));
    let Some(mut request) = request else { return Ok(None) };
    if !request.code.matches(&code) {
        request.wrong_codes += 1;
        tx.put(&request)?;
        return Ok(None);
    }
    tx.remove::<SignInRequest>(&browser)?;
    let user = request.user.map_or(Ok(None), |user| tx.find::<User>(&user))?;
    match user {
        Some(user) if may_sign_in(tx, &user)? => {
            create(tx, new, user.meta.id, None, false, now).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the number of stored requests, without reading them.
pub fn count_requests(tx: &Snapshot) -> Result<u64> {
    tx.len(Table::SignInRequests)
}
