//! The tokens of public pages. See `docs/spec/sharing.md`.
//!
//! A token is derived from its object and a serial number with a subkey of the data file's signing secret.
//! It is not stored, so a GET can show it without a write. The file stores only a keyed hash, by which a token is
//! looked up. The hashes reveal no token without the signing secret, and neither does the time of a look-up.

use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::base::secret::{Purpose, SigningSecret};
use crate::resources::shared::prelude::*;
use crate::store::key;

/// Length of a token in bytes. Base64 makes 30 characters of them, as in PostHog.
const TOKEN_BYTES: usize = 22;

/// Derives and hashes tokens. Clones share the key, and [`SharingTokens::renew`] changes it for all of them.
#[derive(Clone)]
pub struct SharingTokens(Arc<ArcSwap<Hmac<Sha256>>>);

impl SharingTokens {
    /// Derives the subkey for tokens from the signing secret.
    pub fn new(secret: &SigningSecret) -> Result<Self> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(key(secret)?))))
    }

    /// Replaces the subkey with that of a new signing secret.
    pub fn renew(&self, secret: &SigningSecret) -> Result<()> {
        self.0.store(Arc::new(key(secret)?));
        Ok(())
    }

    /// Returns the token of an object with this serial number: 30 characters of `[A-Za-z0-9_-]`.
    pub fn token(&self, object: Object, serial: u64) -> String {
        let bytes = self.mac(b"token", &[&object.encoded(), &serial.encoded()]);
        BASE64_URL_SAFE_NO_PAD.encode(bytes.get(..TOKEN_BYTES).unwrap_or_default())
    }

    /// Returns the keyed hash by which a token is looked up.
    pub fn hash(&self, token: &str) -> TokenHash {
        TokenHash(self.mac(b"look-up", &[token.as_bytes()]))
    }

    /// No purpose may be a prefix of another. Otherwise a token could equal the hash of another token.
    fn mac(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::clone(&self.0.load());
        mac.update(purpose);
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

fn key(secret: &SigningSecret) -> Result<Hmac<Sha256>> {
    Hmac::new_from_slice(&secret.subkey(Purpose::Sharing)?).map_err(Error::internal)
}

/// A keyed hash of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TokenHash([u8; 32]);

impl Key for TokenHash {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        key::take_bytes(input).map(Self)
    }
}
