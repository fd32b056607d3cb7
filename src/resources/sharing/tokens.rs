//! The tokens of public pages (decisions §4, Sharing).
//!
//! A token is derived from its dashboard and a serial number under a key of the data file, so it lies nowhere
//! and a GET shows it without writing. The file holds a keyed hash of it to look it up by: how long that takes
//! tells nothing of any token, and whoever reads the file alone learns none.

use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::secret::{Purpose, SigningSecret};
use crate::store::{Key, key};

/// How many bytes a token has: 30 characters (facts-dashboards §11).
const BYTES: usize = 22;

/// Knows the tokens of public pages. Its clones are renewed with it.
#[derive(Clone)]
pub struct Tokens(Arc<ArcSwap<Hmac<Sha256>>>);

impl Tokens {
    /// The tokens under the key of a data file.
    ///
    /// # Errors
    /// None in practice: the subkey has the length that it needs.
    pub fn new(secret: &SigningSecret) -> Result<Self> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(key(secret)?))))
    }

    /// From now on these are the tokens under the key of `secret`.
    ///
    /// # Errors
    /// None in practice: the subkey has the length that it needs.
    pub fn renew(&self, secret: &SigningSecret) -> Result<()> {
        self.0.store(Arc::new(key(secret)?));
        Ok(())
    }

    /// The token of this serial number for a dashboard: 30 characters of `[A-Za-z0-9_-]`.
    pub fn token(&self, dashboard: DashboardId, serial: u64) -> String {
        let bytes = self.mac(b"token", &[&dashboard.encoded(), &serial.encoded()]);
        BASE64_URL_SAFE_NO_PAD.encode(bytes.get(..BYTES).unwrap_or_default())
    }

    /// What a token is looked up by.
    pub fn hash(&self, token: &str) -> TokenHash {
        TokenHash(self.mac(b"look-up", &[token.as_bytes()]))
    }

    /// No purpose is the beginning of another, so that no token is a hash of another.
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
        key::take(input).map(Self)
    }
}
