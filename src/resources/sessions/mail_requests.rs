//! Requests for a sign-in mail. The code of the mail creates one console session, once, within minutes, and only in the
//! browser that asked.
//!
//! A request for an address that gets no mail is stored too, without a user. So it has the same responses as any other.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fair_queue::client_network;
use crate::ids::UserId;
use crate::resources::domains;
use crate::resources::users::{self, User};
use crate::store::{Index, Order, Reference, Snapshot, Table, Tx, Window, WriteTx, impl_record};
use crate::time::Timestamp;

use super::known_browser::{KnownBrowser, KnownBrowserId};
use super::mail_code::{BrowserDigest, MailCodeDigest};
use super::session_text::SessionKeys;
use super::{Basis, NewSession, VerifiedSession, create};

/// The time within which a code signs in.
pub(super) const CODE_LIFETIME: Duration = Duration::from_mins(10);
/// The number of wrong codes after which a request accepts none.
const MAX_WRONG_CODES: u32 = 5;
/// How long a request counts against its user.
const QUOTA_WINDOW: Duration = Duration::from_hours(1);
/// The maximum number of mails to a user within an hour that one site asks for, or one browser in which the user has
/// signed in.
const MAX_MAILS_OF_ONE: usize = 3;
/// The maximum number of mails to a user within an hour that all sites ask for together.
const MAX_MAILS_TO_STRANGERS: usize = 9;
/// The maximum number of mails to a user within an hour that all browsers in which the user has signed in ask for together.
/// Requests of other browsers do not count.
const MAX_MAILS_TO_KNOWN: usize = 6;

/// A browser's request for a sign-in mail. Not `Debug`, so that logs cannot contain the digests.
#[derive(Clone, Serialize, Deserialize)]
pub struct SignInRequest {
    /// The keyed digest of the browser's nonce.
    pub browser: BrowserDigest,
    /// The keyed digest of the code.
    pub code: MailCodeDigest,
    /// The user that gets the code. Nobody gets the code if there is none.
    pub user: Option<UserId>,
    /// The network of the browser.
    pub network: IpAddr,
    /// When the browser asked.
    pub created_at: Timestamp,
    /// The number of wrong codes so far.
    pub wrong_codes: u32,
    /// The browser, if the user has signed in in it.
    pub known_browser: Option<KnownBrowserId>,
}

impl SignInRequest {
    fn is_open(&self, now: Timestamp) -> bool {
        self.created_at.is_begin_of_current(CODE_LIFETIME, now)
            && self.wrong_codes < MAX_WRONG_CODES
    }
}

/// The requests for mails to a user, oldest first.
const REQUESTS_BY_USER: Index<SignInRequest, (UserId, Timestamp)> =
    Index::many(Table::SignInRequestsByUser, |request| {
        request.user.map(|user| (user, request.created_at))
    });

impl_record!(SignInRequest {
    table: SignInRequests,
    key: |request| -> BrowserDigest { request.browser },
    indexes: [&REQUESTS_BY_USER],
    owner: |_, _| Ok(None),
    references: |request| request.user.iter().map(Reference::to::<User>).collect::<Vec<_>>(),
});

/// A request to store. Its secrets were drawn before the transaction began.
#[derive(Clone)]
pub struct NewSignInRequest {
    /// The keyed digest of the browser's nonce.
    pub browser: BrowserDigest,
    /// The keyed digest of the code.
    pub code: MailCodeDigest,
    /// The address that was entered.
    pub email: String,
    /// The address of the browser.
    pub ip_address: IpAddr,
    /// What the browser sent as proofs that users have signed in in it. Another host of its domain may have set some.
    pub known_browsers: Vec<KnownBrowser>,
    /// Whether only requests of known browsers may still be stored.
    pub is_full: bool,
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

/// Stores a request. Returns the recipient of the mail, or `None` if the address gets no mail: no active user has it, it
/// is not verified, its organization demands single sign-on, or it got too many mails.
///
/// # Errors
/// 503 if too many requests are stored, unless the user has signed in in the browser.
pub fn open_request(
    tx: &mut WriteTx<'_>,
    keys: &SessionKeys,
    new: &NewSignInRequest,
    now: Timestamp,
) -> Result<Option<MailRecipient>> {
    let network = client_network(new.ip_address);
    let user = users::find_by_email(tx, &new.email)?;
    let known_browser = user.as_ref().and_then(|user| {
        new.known_browsers.iter().find_map(|proof| keys.recognize(proof, user.meta.id))
    });
    if new.is_full && known_browser.is_none() {
        return Err(Error::overloaded(1, "there are too many requests"));
    }
    let origin = Origin { site: site(network), known_browser };
    let recipient = match user {
        Some(user) if may_sign_in(tx, &user)? && !has_enough(tx, user.meta.id, origin, now)? => {
            Some(user)
        }
        _ => None,
    };
    tx.put(&SignInRequest {
        browser: new.browser,
        code: new.code,
        user: recipient.as_ref().map(|user| user.meta.id),
        network,
        created_at: now,
        wrong_codes: 0,
        known_browser,
    })?;
    Ok(recipient.map(|User { meta, fields }| MailRecipient {
        user: meta.id,
        email: fields.email,
        expires_at: now.plus(CODE_LIFETIME),
    }))
}

/// Whether mail may sign a user in. An address counts as verified unless an invite's link created the account: the
/// operator vouches for the addresses of other accounts.
fn may_sign_in(tx: &impl Tx, user: &User) -> Result<bool> {
    Ok(user.meta.is_active
        && users::find_unproven(tx, user.meta.id)?.is_none()
        && !domains::enforces_sso(tx, &user.fields.email)?)
}

/// Where a request comes from.
#[derive(Clone, Copy)]
struct Origin {
    site: IpAddr,
    /// The browser, if the user has signed in in it.
    known_browser: Option<KnownBrowserId>,
}

/// Whether the last hour's mails to a user reach a limit. Browsers in which the user has signed in have limits of their own,
/// so others cannot keep such a browser from a mail.
fn has_enough(tx: &impl Tx, user: UserId, origin: Origin, now: Timestamp) -> Result<bool> {
    let (mut of_one, mut of_all) = (0, 0);
    tx.walk(&REQUESTS_BY_USER, &user, Window::all(Order::Ascending), |row| {
        let SignInRequest { created_at, known_browser, network, .. } = row.meta;
        let is_alike = known_browser.is_some() == origin.known_browser.is_some();
        if is_alike && created_at.is_begin_of_current(QUOTA_WINDOW, now) {
            let is_same = match known_browser {
                Some(_) => known_browser == origin.known_browser,
                None => site(network) == origin.site,
            };
            of_one += usize::from(is_same);
            of_all += 1;
        }
        Ok(())
    })?;
    let is_known = origin.known_browser.is_some();
    let most = if is_known { MAX_MAILS_TO_KNOWN } else { MAX_MAILS_TO_STRANGERS };
    Ok(of_one >= MAX_MAILS_OF_ONE || of_all >= most)
}

/// Returns the network that one subscriber may control: an IPv4 address, or an IPv6 /48 network.
fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
    }
}

/// Returns whether the browser has a request that accepts codes.
pub fn find_open_request(tx: &impl Tx, browser: BrowserDigest, now: Timestamp) -> Result<bool> {
    Ok(tx.meta::<SignInRequest>(&browser)?.is_some_and(|request| request.is_open(now)))
}

/// Creates a session from a code, and deletes the request. Counts a wrong code. Returns `None` if the code signs nobody
/// in.
pub fn create_from_mail(
    tx: &mut WriteTx<'_>,
    browser: BrowserDigest,
    code: MailCodeDigest,
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
            let user = user.meta.id;
            let basis = Basis { user, bound_key: None, is_operator: false, is_by_mail: true };
            create(tx, new, basis, now).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the number of stored requests, without reading them.
pub fn count_requests(tx: &Snapshot) -> Result<u64> {
    tx.len(Table::SignInRequests)
}

/// Deletes all requests for mails to a user.
pub fn remove_requests(tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
    tx.remove_indexed(&REQUESTS_BY_USER, &user, usize::MAX).map(drop)
}

/// Returns the keys of at most `limit` requests that no longer count against their users.
pub(super) fn find_expired(
    tx: &impl Tx,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<BrowserDigest>> {
    let mut expired = Vec::new();
    let window = Window { offset: 0, limit, order: Order::Ascending };
    tx.scan_where::<SignInRequest, _>(
        &(),
        window,
        |request| request.created_at.plus(QUOTA_WINDOW) <= now,
        |row| {
            expired.push(row.meta.browser);
            Ok(())
        },
    )?;
    Ok(expired)
}
