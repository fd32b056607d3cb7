//! Browsers in which a user has signed in. Such a browser keeps a proof in a cookie, with which it asks for sign-in mails out
//! of a quota that nobody else can use up. The proof is no credential: it signs nobody in, and names no user.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use crate::ids::UserId;
use crate::secret::SeededRng;

use super::session_text::{SessionKeys, decode};

/// The proof that a user has signed in in a browser:
///
/// ```text
/// nonce (43) | . | keyed digest of the nonce and the user (43)
/// ```
#[derive(Clone, Copy)]
pub struct KnownBrowser {
    nonce: [u8; 32],
    proof: [u8; 32],
}

impl KnownBrowser {
    /// Parses the text of a proof. Returns `None` if its form is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let (nonce, proof) = text.split_once('.')?;
        Some(Self { nonce: decode(nonce)?, proof: decode(proof)? })
    }

    /// Returns the text, in base64url.
    pub fn encode(&self) -> String {
        let [nonce, proof] =
            [self.nonce, self.proof].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        format!("{nonce}.{proof}")
    }
}

impl SessionKeys {
    /// Returns a new proof that a user has signed in in a browser.
    pub fn known_browser(&self, user: UserId, rng: &mut SeededRng) -> KnownBrowser {
        let nonce = rng.bytes();
        KnownBrowser { nonce, proof: self.proof(&nonce, user) }
    }

    /// Returns whether the proof is for this user.
    pub fn is_known_browser(&self, browser: &KnownBrowser, user: UserId) -> bool {
        self.proof(&browser.nonce, user).ct_eq(&browser.proof).into()
    }

    fn proof(&self, nonce: &[u8; 32], user: UserId) -> [u8; 32] {
        self.hash(*b"visited", &[nonce, &user.0.to_be_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secret::{Seed, SigningSecret};

    fn keys() -> SessionKeys {
        SessionKeys::new(&SigningSecret::from_parts([7; 32], None)).expect("a key")
    }

    #[test]
    fn proof_is_for_one_user() {
        let (keys, mut rng) = (keys(), Seed::generate().rng());
        let [one, other] = [(); 2].map(|()| keys.known_browser(UserId(1), &mut rng));
        let parsed = KnownBrowser::parse(&one.encode()).expect("its own text");
        assert!(keys.is_known_browser(&parsed, UserId(1)));
        assert!(!keys.is_known_browser(&one, UserId(2)));
        let mixed = KnownBrowser { nonce: other.nonce, proof: one.proof };
        assert!(!keys.is_known_browser(&mixed, UserId(1)));
        keys.renew(&SigningSecret::from_parts([7; 32], Some([8; 32]))).expect("another key");
        assert!(!keys.is_known_browser(&one, UserId(1)));
    }

    proptest! {
        #[test]
        fn parsing_arbitrary_proofs_does_not_panic(text in ".*") {
            prop_assert!(KnownBrowser::parse(&text).is_none_or(|parsed| parsed.encode() == text));
        }
    }
}
