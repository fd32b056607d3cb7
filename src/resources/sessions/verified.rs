//! Verifies sessions: once for a request, and again in each snapshot and write of the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::ids::{ApiKeyId, SessionId, UserId};
use crate::resources::api_keys::{self, ApiKey};
use crate::resources::users::User;
use crate::store::{Tx, WriteTx};

use super::session_text::{SecretDigest, SessionKeys, SessionText};
use super::{IDLE_LIFETIME, MAX_LIFETIME, Meta, Session, USE_RECORD_INTERVAL};

/// A verified session. As a request extension it authenticates a request of the console inside of the process; no header
/// has this effect.
///
/// It states only that a text matches a stored digest, and grants nothing: each check reads the session again. Not
/// `Debug`, so that logs cannot contain the digest.
#[derive(Clone)]
pub struct VerifiedSession(Arc<Inner>);

struct Inner {
    id: SessionId,
    user: UserId,
    key: Option<ApiKeyId>,
    is_operator: bool,
    digest: SecretDigest,
    /// When the session ends if it is not used again.
    ends_at: Timestamp,
    /// Whether the use by this request is still to be recorded.
    is_use_due: AtomicBool,
}

impl VerifiedSession {
    pub(super) fn of(session: &Meta, now: Timestamp) -> Self {
        let is_use_due = !session.last_used_at.is_begin_of_current(USE_RECORD_INTERVAL, now);
        Self(Arc::new(Inner {
            id: session.id,
            user: session.user,
            key: session.bound_key.as_ref().map(|bound| bound.id),
            is_operator: session.is_operator,
            digest: session.digest,
            ends_at: session.expires_at.min(now.plus(IDLE_LIFETIME)),
            is_use_due: AtomicBool::new(is_use_due),
        }))
    }

    /// Returns the session's public id.
    pub fn id(&self) -> SessionId {
        self.0.id
    }

    /// Returns when the session ends if this is its last use. A session that is bound to a key may end earlier.
    pub fn ends_at(&self) -> Timestamp {
        self.0.ends_at
    }

    /// Returns the user that signed in.
    pub fn user(&self) -> UserId {
        self.0.user
    }

    /// Returns the key that the session is bound to, if it is bound to one.
    pub fn key(&self) -> Option<ApiKeyId> {
        self.0.key
    }

    /// Returns whether the session may see the pages for the operator.
    pub fn is_operator(&self) -> bool {
        self.0.is_operator
    }

    /// Returns whether a use is due to be recorded. Returns true at most once for all clones.
    pub fn is_use_due(&self) -> bool {
        self.0.is_use_due.swap(false, Ordering::Relaxed)
    }

    /// Records a use of the session, and of the key that it is bound to.
    pub fn record_use(&self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        super::record_use(tx, self.id(), now)?;
        self.key().map_or(Ok(()), |key| api_keys::record_use(tx, key, now))
    }
}

/// Verifies the text of a session.
///
/// # Errors
/// 401 with the same text for every reason if the session is not valid.
pub fn verify(
    tx: &impl Tx,
    keys: &SessionKeys,
    text: &str,
    now: Timestamp,
) -> Result<VerifiedSession> {
    let text = SessionText::parse(text).ok_or_else(session_ended)?;
    let session = find_live(tx, text.id, &keys.digest(&text), now)?.session;
    let user = tx.meta::<User>(&session.user)?.filter(|user| user.is_active);
    user.ok_or_else(session_ended)?;
    Ok(VerifiedSession::of(&session, now))
}

/// A session that is valid now.
pub struct LiveSession {
    /// The session.
    pub session: Meta,
    /// The key that the session is bound to, if it is bound to one.
    pub key: Option<api_keys::Meta>,
}

/// Returns the session of a request as it is stored now. The caller must check that its user is active.
///
/// # Errors
/// 401 if the session has ended.
pub fn get_live(tx: &impl Tx, of: &VerifiedSession, now: Timestamp) -> Result<LiveSession> {
    find_live(tx, of.0.id, &of.0.digest, now)
}

fn find_live(
    tx: &impl Tx,
    id: SessionId,
    digest: &SecretDigest,
    now: Timestamp,
) -> Result<LiveSession> {
    // The clock may have been set back since the session began or was used: its end is then years away.
    let is_current = |session: &Meta| {
        session.expires_at.is_end_of_current(MAX_LIFETIME, now)
            && session.last_used_at.is_begin_of_current(IDLE_LIFETIME, now)
    };
    let session = tx.meta::<Session>(&id)?.filter(|session| session.digest.matches(digest));
    let session = session.filter(is_current);
    let live = session.map_or(Ok(None), |session| check_live(tx, session, now))?;
    live.ok_or_else(session_ended)
}

/// Returns a session with its key, or `None` if the session has ended. It ends with the key that it is bound to, and
/// with the value of the key that signed in: a rotation of the key ends it at once.
pub(super) fn check_live(
    tx: &impl Tx,
    session: Meta,
    now: Timestamp,
) -> Result<Option<LiveSession>> {
    let idle_end = session.last_used_at.plus(IDLE_LIFETIME);
    if now >= session.expires_at.min(idle_end) {
        return Ok(None);
    }
    let Some(bound) = &session.bound_key else {
        return Ok(Some(LiveSession { session, key: None }));
    };
    let key = tx.meta::<ApiKey>(&bound.id)?;
    let key = key.filter(|key| key.hash == bound.hash && !key.is_expired(now));
    Ok(key.map(|key| LiveSession { session, key: Some(key) }))
}

fn session_ended() -> Error {
    Error::authentication_failed_as("The session is invalid or has ended. Sign in again.")
}
