//! Sign-in links. A link's code creates one console session of one user, once and within minutes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::ids::UserId;
use crate::resources::users::{self, User};
use crate::store::{Index, Reference, Table, Tx, WriteTx, impl_record};

use super::session_text::CodeDigest;
use super::{Basis, NewSession, VerifiedSession, create};

/// The lifetime of a sign-in link.
const LINK_LIFETIME: Duration = Duration::from_mins(5);
/// The maximum number of sign-in links of a user. A further one replaces the one that expires first.
const MAX_LINKS: usize = 5;

/// A link that creates a console session once. The code itself is not stored. Not `Debug`, so that logs cannot contain
/// the digest.
#[derive(Clone, Serialize, Deserialize)]
pub struct SignInLink {
    /// The keyed digest of the code.
    pub code: CodeDigest,
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
    key: |link| -> CodeDigest { link.code },
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
    code: CodeDigest,
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
pub fn find_link(tx: &impl Tx, code: CodeDigest, now: Timestamp) -> Result<users::Fields> {
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
    code: CodeDigest,
    new: &NewSession,
    now: Timestamp,
) -> Result<VerifiedSession> {
    let link = valid_link(tx, code, now)?;
    tx.remove::<SignInLink>(&code)?;
    if !tx.meta::<User>(&link.user)?.is_some_and(|user| user.is_active) {
        return Err(invalid_link());
    }
    let SignInLink { user, is_operator, .. } = link;
    create(tx, new, Basis { user, bound_key: None, is_operator, is_by_mail: false }, now)
}

fn valid_link(tx: &impl Tx, code: CodeDigest, now: Timestamp) -> Result<SignInLink> {
    let link = tx
        .meta::<SignInLink>(&code)?
        .filter(|link| link.expires_at.is_end_of_current(LINK_LIFETIME, now));
    link.ok_or_else(invalid_link)
}

fn invalid_link() -> Error {
    Error::authentication_failed_as("The sign-in link is invalid, has expired or was used.")
}
