//! The text of a session, which a browser keeps in a cookie, and the keyed digests under which the file knows secrets:
//!
//! ```text
//! public id (22) | . | secret (43)
//! ```
//!
//! Both parts are base64url of a fixed width. A secret has 256 random bits, so a fast hash of it is as hard to invert as
//! a slow one.

use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::base::error::Result;
use crate::base::secret::{Purpose, SeededRng, SigningSecret};
use crate::base::time::Timestamp;
use crate::ids::SessionId;
use crate::store::{Key, key};

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
