//! The text of a session, which a browser keeps in a cookie, and the keyed digests under which the file knows secrets:
//!
//! ```text
//! public id (22) | . | secret (43)
//! ```
//!
//! Both parts are base64url of a fixed width. A secret has 256 random bits, so a fast hash of it is as hard to invert as
//! a slow one.
//!
//! A session is verified by its text once for a request, and again in each snapshot and write of the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use crate::base::secret::{Purpose, SigningSecret};
use crate::ids::{ApiKeyId, SessionId};
use crate::resources::api_keys::{self, ApiKey};
use crate::resources::shared::prelude::*;
use crate::resources::users::User;
use crate::store::key;

use super::{IDLE_LIFETIME, MAX_LIFETIME, Meta, Session, USE_RECORD_INTERVAL};

/// The id and the secret of a session. Not `Debug`, so that logs cannot contain it.
pub struct SessionText {
    pub(super) id: SessionId,
    secret: [u8; 32],
}

impl SessionText {
    /// Creates the text of a new session.
    pub fn generate(rng: &mut SeededRng, now: Timestamp) -> Self {
        Self { id: SessionId(rng.uuid(now)), secret: rng.bytes() }
    }

    /// Parses the text of a session. Returns `None` if its form is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        let id = Uuid::from_bytes(decode(id)?);
        Some(Self { id: SessionId(id), secret: decode(secret)? })
    }

    /// Returns the text. It is a credential.
    pub fn encode(&self) -> String {
        let mut text = BASE64_URL_SAFE_NO_PAD.encode(self.id.0.as_bytes());
        text.push('.');
        BASE64_URL_SAFE_NO_PAD.encode_string(self.secret, &mut text);
        text
    }
}

pub(super) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let written = BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut bytes);
    (written == Ok(N)).then_some(bytes)
}

/// The subkey for the digests of session secrets and sign-in codes. Clones share the key, and [`SessionKeys::renew`]
/// changes it for all of them.
#[derive(Clone)]
pub struct SessionKeys(Arc<ArcSwap<[u8; 32]>>);

impl SessionKeys {
    /// Derives the subkey from the signing secret.
    pub fn new(secret: &SigningSecret) -> Result<Self> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(secret.subkey(Purpose::Session)?))))
    }

    /// Replaces the subkey with that of a new signing secret.
    pub fn renew(&self, secret: &SigningSecret) -> Result<()> {
        self.0.store(Arc::new(secret.subkey(Purpose::Session)?));
        Ok(())
    }

    /// Returns the digest that verifies the secret of a session.
    pub fn digest(&self, text: &SessionText) -> SecretDigest {
        SecretDigest(self.hash(*b"session", &[text.id.0.as_bytes(), &text.secret]))
    }

    /// Returns the digest by which the sign-in link with this code is found.
    pub fn code_digest(&self, code: &str) -> SecretDigest {
        SecretDigest(self.hash(*b"sign-in", &[code.as_bytes()]))
    }

    /// The purposes have the same length, so no text of one can equal a text of another.
    pub(super) fn hash(&self, purpose: [u8; 7], parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0.load());
        hasher.update(&purpose);
        for part in parts {
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }
}

/// The keyed digest of a secret: of a session, a nonce or a code. Not `Debug`, so that logs cannot contain it.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct SecretDigest(pub(super) [u8; 32]);

impl SecretDigest {
    /// Compares in constant time.
    pub(super) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Key for SecretDigest {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        key::take_bytes(input).map(Self)
    }
}

/// A verified session. As a request extension it authenticates a request of the console inside of the process; no header
/// has this effect.
///
/// It states only that a text matches a stored digest, and grants nothing: each check reads the session again. Not
/// `Debug`, so that logs cannot contain the digest.
#[derive(Clone)]
pub struct VerifiedSession {
    /// The session's public id.
    pub id: SessionId,
    /// The user that signed in.
    pub user: UserId,
    /// The key that the session is bound to, if it is bound to one.
    pub key: Option<ApiKeyId>,
    /// Whether the session may see the pages for the operator.
    pub is_operator: bool,
    digest: SecretDigest,
    /// When the session ends if this is its last use. A session that is bound to a key may end earlier.
    pub ends_at: Timestamp,
    /// Whether the use by this request is still to be recorded.
    is_use_due: Arc<AtomicBool>,
}

impl VerifiedSession {
    pub(super) fn of(session: &Meta, now: Timestamp) -> Self {
        let is_use_due = !session.last_used_at.is_begin_of_current(USE_RECORD_INTERVAL, now);
        Self {
            id: session.id,
            user: session.user,
            key: session.bound_key.as_ref().map(|bound| bound.id),
            is_operator: session.is_operator,
            digest: session.digest,
            ends_at: session.expires_at.min(now.plus(IDLE_LIFETIME)),
            is_use_due: Arc::new(AtomicBool::new(is_use_due)),
        }
    }

    /// Returns whether a use is due to be recorded. Returns true at most once for all clones.
    pub fn is_use_due(&self) -> bool {
        self.is_use_due.swap(false, Ordering::Relaxed)
    }

    /// Records a use of the session, and of the key that it is bound to.
    pub fn record_use(&self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        super::record_use(tx, self.id, now)?;
        self.key.map_or(Ok(()), |key| api_keys::record_use(tx, key, now))
    }
}

/// Verifies the text of a session.
///
/// # Errors
/// 401 with the same text for every reason if the session is not valid.
pub fn verify(
    tx: &dyn Raw,
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
pub fn get_live(tx: &dyn Raw, of: &VerifiedSession, now: Timestamp) -> Result<LiveSession> {
    find_live(tx, of.id, &of.digest, now)
}

fn find_live(
    tx: &dyn Raw,
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
    tx: &dyn Raw,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::secret::Seed;

    fn session() -> (SessionKeys, SessionText) {
        let keys = SessionKeys::new(&SigningSecret::from_parts([7; 32], None)).expect("a key");
        (keys, SessionText::generate(&mut Seed::generate().rng(), Timestamp::from_micros(0)))
    }

    #[test]
    fn generated_session_text_parses_back() {
        let (keys, text) = session();
        let encoded = text.encode();
        assert_eq!(encoded.len(), 66);
        let parsed = SessionText::parse(&encoded).expect("its own text");
        assert_eq!(parsed.id, text.id);
        assert!(keys.digest(&parsed).matches(&keys.digest(&text)));
    }

    #[test]
    fn session_digest_depends_on_the_key_of_the_file() {
        let (keys, text) = session();
        let before = keys.digest(&text);
        keys.renew(&SigningSecret::from_parts([7; 32], Some([8; 32]))).expect("another key");
        assert!(!keys.digest(&text).matches(&before));
    }

    proptest! {
        #[test]
        fn session_text_with_one_changed_character_has_another_digest(
            at in 0usize..66, with in "[0-9A-Za-z_.-]",
        ) {
            let (keys, text) = session();
            let original = text.encode();
            let mut changed = original.clone();
            changed.replace_range(at..=at, &with);
            let matches = SessionText::parse(&changed)
                .is_some_and(|parsed| keys.digest(&parsed).matches(&keys.digest(&text)));
            prop_assert_eq!(matches, changed == original);
        }

        #[test]
        fn parsing_arbitrary_session_text_does_not_panic(text in ".*") {
            prop_assert!(SessionText::parse(&text).is_none_or(|parsed| parsed.encode() == text));
        }
    }
}
