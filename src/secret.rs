//! Randomness, and the subkeys of a data file's signing secret.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::time::Timestamp;

/// Random values for one change, the same ones each time they are drawn anew.
///
/// A write's rule may run more than once (its transaction may be taken back and tried again), so it
/// draws from a seed that was taken before it was queued and never from the system itself.
#[derive(Clone)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A fresh seed.
    pub fn take() -> Self {
        let mut seed = [0; 32];
        rand::rng().fill_bytes(&mut seed);
        Self(seed)
    }

    /// The values of this seed, from the first on.
    pub fn draw(&self) -> Draw {
        Draw(StdRng::from_seed(self.0))
    }
}

/// A stream of random values, drawn from a [`Seed`].
pub struct Draw(StdRng);

impl Draw {
    /// A version 7 UUID of the given moment.
    pub fn uuid(&mut self, now: Timestamp) -> Uuid {
        let mut random = [0; 10];
        self.0.fill_bytes(&mut random);
        uuid::Builder::from_unix_timestamp_millis(now.millis(), &random).into_uuid()
    }

    /// 32 random bytes.
    pub fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// A salt for Argon2.
    pub fn salt(&mut self) -> [u8; 16] {
        let mut salt = [0; 16];
        self.0.fill_bytes(&mut salt);
        salt
    }

    /// 8 random characters of [0-9A-Za-z_-], as insights have them in links (facts-dashboards §7).
    pub fn short_id(&mut self) -> String {
        let mut bytes = [0; 6];
        self.0.fill_bytes(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// A random base62 token of 44 characters: 256 bits.
    pub fn token(&mut self) -> String {
        base62_pair(&self.bytes())
    }
}

/// 32 bytes in base62, each half in a fixed width of 22 characters.
pub fn base62_pair(bytes: &[u8; 32]) -> String {
    let (high, low) = bytes.split_at(16);
    let number = |half: &[u8]| half.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
    format!("{}{}", base62_wide(number(high)), base62_wide(number(low)))
}

/// A 128-bit number in base62, in a fixed width of 22 characters.
pub fn base62_wide(number: u128) -> String {
    format!("{:0>22}", base62::encode(number))
}

/// The signing secret of a data file, from which each purpose gets a subkey of its own.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningSecret {
    /// What the file was made with. The tags of API keys always come from it, so that the keys go on.
    first: [u8; 32],
    /// What all else comes from since it was renewed.
    renewed: Option<[u8; 32]>,
}

/// What a subkey is for. Subkeys are independent: one tells nothing of another.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// The tag at the end of every personal API key.
    KeyTag,
    /// `live_events_token`.
    LiveEvents,
    /// The tokens in the mails of invites, which prove the address.
    InviteMail,
    /// The tokens in the links to invites that are handed over by other ways.
    InviteLink,
    /// The tokens of dashboards' public pages.
    Sharing,
}

impl Purpose {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::KeyTag => b"steward key tag 1",
            Self::LiveEvents => b"steward live events token 1",
            Self::InviteMail => b"steward invite mail token 1",
            Self::InviteLink => b"steward invite link token 1",
            Self::Sharing => b"steward sharing token 1",
        }
    }
}

impl SigningSecret {
    /// A new secret for a new data file.
    pub fn new(draw: &mut Draw) -> Self {
        Self::of(draw.bytes(), None)
    }

    /// The secret of these parts, as a file holds them.
    pub const fn of(first: [u8; 32], renewed: Option<[u8; 32]>) -> Self {
        Self { first, renewed }
    }

    /// The same, with every subkey a new one but that of the key tags.
    #[must_use]
    pub fn renewed(&self, draw: &mut Draw) -> Self {
        Self::of(self.first, Some(draw.bytes()))
    }

    /// Its parts, as a file holds them.
    pub const fn parts(&self) -> (&[u8; 32], Option<&[u8; 32]>) {
        (&self.first, self.renewed.as_ref())
    }

    /// The subkey for `purpose`.
    ///
    /// # Errors
    /// None in practice: 32 bytes are within what HKDF-SHA256 can expand to.
    pub fn subkey(&self, purpose: Purpose) -> Result<[u8; 32]> {
        let root = match purpose {
            Purpose::KeyTag => &self.first,
            _ => self.renewed.as_ref().unwrap_or(&self.first),
        };
        let mut subkey = [0; 32];
        Hkdf::<Sha256>::new(None, root)
            .expand(purpose.label(), &mut subkey)
            .map_err(Error::internal)?;
        Ok(subkey)
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(..)")
    }
}
