//! Console sessions: browsers that are signed in. See `docs/spec/sessions.md`.
//!
//! A session is created by an API key, to which it stays bound, by a [sign-in link](SignInLink), or by the code of a mail
//! that a browser [asked for](SignInRequest). The file stores only a keyed digest of its secret. [`SessionText`] has the
//! text that a browser keeps, and [`verify`] checks it.

pub mod api;
pub mod http;
mod mail_code;
mod session_text;
mod sign_in;

use std::net::IpAddr;
use std::time::Duration;

use crate::ids::{ApiKeyId, SessionId};
use crate::resources::api_keys::ApiKey;
use crate::resources::shared::prelude::*;
use crate::resources::users::User;
use crate::store::Snapshot;

pub use api::RECORDS;
pub use mail_code::{BrowserNonce, KnownBrowser, MailCode, render_mail};
pub use session_text::{
    LiveSession, SecretDigest, SessionKeys, SessionText, VerifiedSession, get_live, verify,
};
use sign_in::{LINKS_BY_USER, REQUESTS_BY_USER};
pub use sign_in::{
    MailRecipient, NewSignInRequest, SignInLink, SignInRequest, count_requests, create_from_link,
    create_from_mail, create_link, find_link, find_open_request, find_recipient, open_request,
};

/// The time after which every session ends: 7 days.
const MAX_LIFETIME: Duration = Duration::from_hours(7 * 24);
/// The time after the last recorded use at which a session ends.
const IDLE_LIFETIME: Duration = Duration::from_hours(12);
/// The minimum time between two recorded uses of a session.
const USE_RECORD_INTERVAL: Duration = Duration::from_mins(10);
/// The maximum number of sessions of a user. A further one ends another.
const MAX_SESSIONS: usize = 50;
/// The maximum length of a stored `User-Agent`, in characters.
const MAX_USER_AGENT: usize = 200;
/// The maximum number of sessions, of links, and of requests that one transaction of the maintenance deletes.
const DELETE_BATCH: usize = 500;

/// A console session.
pub struct Session {
    /// The fields that every request needs.
    pub meta: Meta,
    /// The fields that the list shows.
    pub fields: Fields,
}

/// The fields of a session that every request needs. Not `Debug`, so that logs cannot contain the digest.
#[derive(Clone, Serialize, Deserialize)]
pub struct Meta {
    /// The public id of the session.
    pub id: SessionId,
    /// The user that signed in.
    pub user: UserId,
    /// The keyed digest of the session's secret.
    pub digest: SecretDigest,
    /// The key that signed in, unless a link or a mail did.
    pub bound_key: Option<BoundKey>,
    /// Whether the session may see the pages for the operator.
    pub is_operator: bool,
    /// When the session was created.
    pub created_at: Timestamp,
    /// When the session ends at the latest.
    pub expires_at: Timestamp,
    /// The time of the last recorded use.
    pub last_used_at: Timestamp,
}

/// The value of a key that a session is bound to.
#[derive(Clone, Serialize, Deserialize)]
pub struct BoundKey {
    /// The public id of the key. The key may have been deleted.
    pub id: ApiKeyId,
    /// The stored hash of the key's value at sign-in.
    pub hash: String,
}

/// The client that signed in.
#[derive(Clone, Serialize, Deserialize)]
pub struct Fields {
    /// The beginning of its `User-Agent`.
    pub user_agent: String,
    /// Its address.
    pub ip_address: IpAddr,
    /// Whether the code of a mail signed it in.
    pub is_by_mail: bool,
}

impl Fields {
    /// Returns the client with this `User-Agent`, which is cut to 200 characters.
    pub fn new(user_agent: &str, ip_address: IpAddr) -> Self {
        let user_agent = user_agent.chars().take(MAX_USER_AGENT).collect();
        Self { user_agent, ip_address, is_by_mail: false }
    }
}

/// The sessions of a user, oldest first.
pub const BY_USER: Index<Session, UserId> =
    Index::many(Table::SessionsByUser, |session| Some(session.meta.user));

// Does not refer to its key: a session of a deleted key has ended, and the maintenance deletes it.
impl_record!(Session {
    table: Sessions,
    key: |session| -> SessionId { session.meta.id },
    parts: meta: Meta, fields: Fields,
    indexes: [&BY_USER],
    owner: |_, _| Ok(None),
    references: |session| [Reference::to::<User>(&session.meta.user)],
});

/// A session to create. Its secret was drawn before the transaction began.
#[derive(Clone)]
pub struct NewSession {
    id: SessionId,
    digest: SecretDigest,
    client: Fields,
    /// The session that the browser has. The new one replaces it.
    replaced: Option<SessionId>,
}

impl NewSession {
    /// Returns the session with this text. It ends the session that the browser has.
    pub fn new(
        keys: &SessionKeys,
        text: &SessionText,
        client: Fields,
        replaced: Option<&VerifiedSession>,
    ) -> Self {
        let replaced = replaced.map(|session| session.id);
        Self { id: text.id, digest: keys.digest(text), client, replaced }
    }
}

/// Creates a session that is bound to a key. `hash` is the stored hash that the presented value of the key matches.
///
/// # Errors
/// 401 if the key or its user is not valid, or if the value was replaced, also during its grace period.
pub fn create_for_key(
    tx: &mut WriteTx<'_>,
    id: ApiKeyId,
    hash: &str,
    new: &NewSession,
    now: Timestamp,
) -> Result<VerifiedSession> {
    let key = tx.meta::<ApiKey>(&id)?.filter(|key| key.hash == hash && !key.is_expired(now));
    let key = key.ok_or_else(Error::authentication_failed)?;
    if !tx.meta::<User>(&key.user)?.is_some_and(|user| user.is_active) {
        return Err(Error::authentication_failed());
    }
    let bound_key = Some(BoundKey { id, hash: key.hash });
    create(tx, new, key.user, bound_key, false, now)
}

fn create(
    tx: &mut WriteTx<'_>,
    new: &NewSession,
    user: UserId,
    bound_key: Option<BoundKey>,
    is_operator: bool,
    now: Timestamp,
) -> Result<VerifiedSession> {
    if let Some(replaced) = &new.replaced {
        tx.remove::<Session>(replaced)?;
    }
    let mut live = Vec::new();
    for id in tx.keys(&BY_USER, &user, usize::MAX)? {
        match find_live(tx, id, now)? {
            Some(LiveSession { key, .. }) => live.push((id, key.map(|key| key.id))),
            None => drop(tx.remove::<Session>(&id)?),
        }
    }
    let key = bound_key.as_ref().map(|bound| bound.id);
    while live.len() >= MAX_SESSIONS
        && let Some(index) = most_dispensable(&live, key)
    {
        tx.remove::<Session>(&live.remove(index).0)?;
    }
    let meta = Meta {
        id: new.id,
        user,
        digest: new.digest,
        bound_key,
        is_operator,
        created_at: now,
        expires_at: now.plus(MAX_LIFETIME),
        last_used_at: now,
    };
    let verified = VerifiedSession::of(&meta, now);
    tx.put(&Session { meta, fields: new.client.clone() })?;
    Ok(verified)
}

/// Returns the index of the session to end for a further one of the key `new`: the oldest of the key with the most
/// sessions. So a key cannot end the sessions of others by signing in often. Sessions without a key count as those of one
/// key.
fn most_dispensable(
    live: &[(SessionId, Option<ApiKeyId>)],
    new: Option<ApiKeyId>,
) -> Option<usize> {
    let count = |of: Option<ApiKeyId>| {
        live.iter().filter(|(_, key)| *key == of).count() + usize::from(of == new)
    };
    // The last of several maxima is the oldest session.
    let (index, _) = live.iter().enumerate().rev().max_by_key(|(_, (_, key))| count(*key))?;
    Some(index)
}

fn find_live(tx: &dyn Raw, id: SessionId, now: Timestamp) -> Result<Option<LiveSession>> {
    let session = tx.meta::<Session>(&id)?;
    session.map_or(Ok(None), |session| session_text::check_live(tx, session, now))
}

fn is_live(tx: &dyn Raw, id: SessionId, now: Timestamp) -> Result<bool> {
    Ok(find_live(tx, id, now)?.is_some())
}

/// Records the use of a session, unless a use was recorded within the last ten minutes or the session was deleted.
fn record_use(tx: &mut WriteTx<'_>, id: SessionId, now: Timestamp) -> Result<()> {
    let due = |session: &Session| {
        !session.meta.last_used_at.is_begin_of_current(USE_RECORD_INTERVAL, now)
    };
    let Some(mut session) = tx.find::<Session>(&id)?.filter(due) else { return Ok(()) };
    session.meta.last_used_at = now;
    tx.put(&session)
}

/// Ends a session of the user.
///
/// # Errors
/// 404 if the user has no such session, or if it has ended.
pub fn end(tx: &mut WriteTx<'_>, user: UserId, id: SessionId, now: Timestamp) -> Result<()> {
    let is_own = tx.meta::<Session>(&id)?.is_some_and(|session| session.user == user);
    if !is_own || !is_live(tx, id, now)? {
        return Err(Error::not_found());
    }
    tx.remove::<Session>(&id).map(drop)
}

/// Ends all sessions of a user, and deletes the user's sign-in links and requests for a sign-in mail.
pub fn remove_all(tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
    tx.remove_indexed(&BY_USER, &user, usize::MAX)?;
    tx.remove_indexed(&LINKS_BY_USER, &user, usize::MAX)?;
    tx.remove_indexed(&REQUESTS_BY_USER, &user, usize::MAX).map(drop)
}

/// Ends the sessions of all users and deletes all sign-in links and requests for a sign-in mail.
pub fn remove_everything(tx: &mut WriteTx<'_>) -> Result<()> {
    tx.remove_some::<Session>(&(), usize::MAX)?;
    tx.remove_some::<SignInLink>(&(), usize::MAX)?;
    tx.remove_some::<SignInRequest>(&(), usize::MAX).map(drop)
}

/// Finds as many sessions that ended, and links and requests that expired, as one transaction deletes. Returns `None` if
/// there are none, or else the deletion. It skips sessions that are live again, because their key was extended.
pub fn find_ended(
    tx: &Snapshot,
    now: Timestamp,
) -> Result<Option<impl Fn(&mut WriteTx<'_>) -> Result<()> + Send + use<>>> {
    let mut sessions = Vec::new();
    tx.walk_from(&BY_USER, &(), &(), |row| {
        let id = row.meta.id;
        if session_text::check_live(tx, row.meta, now)?.is_none() {
            sessions.push(id);
        }
        Ok(continue_if(sessions.len() < DELETE_BATCH))
    })?;
    let links = find_where::<SignInLink>(tx, |link| link.expires_at <= now)?;
    let requests = find_where::<SignInRequest>(tx, |request| request.has_expired(now))?;
    if sessions.is_empty() && links.is_empty() && requests.is_empty() {
        return Ok(None);
    }
    Ok(Some(move |tx: &mut WriteTx<'_>| {
        for id in &sessions {
            if !is_live(tx, *id, now)? {
                tx.remove::<Session>(id)?;
            }
        }
        for code in &links {
            tx.remove::<SignInLink>(code)?;
        }
        for browser in &requests {
            tx.remove::<SignInRequest>(browser)?;
        }
        Ok(())
    }))
}

/// Returns the keys of at most [`DELETE_BATCH`] records that `keep` keeps.
fn find_where<R: Record>(tx: &Snapshot, keep: impl FnMut(&R::Meta) -> bool) -> Result<Vec<R::Key>> {
    let mut found = Vec::new();
    let window = Window { offset: 0, limit: DELETE_BATCH, order: Order::Ascending };
    tx.scan_where::<R, _>(&(), window, keep, |row| {
        found.push(row.into_record()?.key());
        Ok(())
    })?;
    Ok(found)
}
