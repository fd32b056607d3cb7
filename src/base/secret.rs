//! Random values, and the subkeys of a data file's signing secret.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hkdf::Hkdf;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;

/// A seed for the random values of one change. Each [`rng`](Self::rng) yields the same values.
///
/// The rule of a write may run more than once, because its transaction can be rolled back and retried. A rule
/// therefore draws from a seed that was taken before the write was queued, never from the system.
#[derive(Clone)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Takes a seed from the system's random generator.
    pub fn generate() -> Self {
        let mut seed = [0; 32];
        rand::rng().fill_bytes(&mut seed);
        Self(seed)
    }

    /// Returns the values of this seed, starting with the first.
    pub fn rng(&self) -> SeededRng {
        SeededRng { random: StdRng::from_seed(self.0), time_of_ids: None }
    }

    /// Returns the values of this seed with ids that do not depend on the time: all have the timestamp `time`.
    pub fn rng_at(&self, time: Timestamp) -> SeededRng {
        SeededRng { time_of_ids: Some(time), ..self.rng() }
    }
}

impl From<[u8; 32]> for Seed {
    fn from(seed: [u8; 32]) -> Self {
        Self(seed)
    }
}

/// Where a service takes its seeds from: the system, or a number, with which it takes the same seeds in each run. Clones take
/// from the same sequence.
#[derive(Debug, Clone, Default)]
pub struct SeedSource(Option<Numbered>);

/// The sequences of seeds of a number: one for requests, one for the work in the background.
#[derive(Debug, Clone)]
struct Numbered {
    number: u64,
    drawn: Arc<[AtomicU64; 2]>,
    is_background: bool,
}

/// How many seeds were drawn from each sequence of a number.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeedPosition([u64; 2]);

impl SeedSource {
    /// Creates the source of a number.
    pub fn numbered(number: u64) -> Self {
        Self(Some(Numbered { number, drawn: Arc::default(), is_background: false }))
    }

    /// Returns a source for the work in the background, whose seeds do not depend on how many this one has returned.
    #[must_use]
    pub fn for_background(&self) -> Self {
        let other = |own: &Numbered| Numbered { is_background: true, ..own.clone() };
        Self(self.0.as_ref().map(other))
    }

    /// Returns the next seed.
    pub fn draw(&self) -> Seed {
        let Some(Numbered { number, drawn, is_background }) = &self.0 else {
            return Seed::generate();
        };
        let [of_requests, of_background] = &**drawn;
        let drawn = if *is_background { of_background } else { of_requests };
        let (sequence, place) = (u64::from(*is_background), drawn.fetch_add(1, Ordering::Relaxed));
        let mut seed = [0; 32];
        for (part, value) in seed.chunks_exact_mut(8).zip([*number, sequence, place]) {
            part.copy_from_slice(&value.to_be_bytes());
        }
        Seed(seed)
    }

    /// Returns the first seed of a number, without drawing it.
    pub fn first(&self) -> Seed {
        match &self.0 {
            Some(numbered) => Self::numbered(numbered.number).draw(),
            None => Seed::generate(),
        }
    }

    /// Returns how many seeds were drawn.
    pub fn position(&self) -> SeedPosition {
        let drawn = |one: &AtomicU64| one.load(Ordering::Relaxed);
        self.0.as_ref().map_or_else(SeedPosition::default, |numbered| {
            SeedPosition(numbered.drawn.each_ref().map(drawn))
        })
    }

    /// Draws the same seeds again as since this position, if they are those of a number.
    pub fn rewind(&self, to: SeedPosition) {
        let drawn = self.0.iter().flat_map(|numbered| numbered.drawn.iter());
        drawn.zip(to.0).for_each(|(drawn, place)| drawn.store(place, Ordering::Relaxed));
    }
}

/// A stream of random values, drawn from a [`Seed`].
pub struct SeededRng {
    random: StdRng,
    /// The timestamp of all ids, if they do not have that of their creation.
    time_of_ids: Option<Timestamp>,
}

impl SeededRng {
    /// Returns a version 7 UUID with the timestamp `now`.
    pub fn uuid(&mut self, now: Timestamp) -> Uuid {
        let mut random = [0; 10];
        self.random.fill_bytes(&mut random);
        let time = self.time_of_ids.unwrap_or(now);
        uuid::Builder::from_unix_timestamp_millis(time.millis(), &random).into_uuid()
    }

    /// Returns 32 random bytes.
    pub fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    /// Returns a salt for Argon2.
    pub fn salt(&mut self) -> [u8; 16] {
        let mut salt = [0; 16];
        self.random.fill_bytes(&mut salt);
        salt
    }

    /// Returns 8 random characters of `[0-9A-Za-z]`, at least one of them a letter: the `short_id` of an insight.
    /// PostHog's clients take a text of digits alone for a number.
    pub fn short_id(&mut self) -> String {
        loop {
            let mut bytes = [0; 16];
            self.random.fill_bytes(&mut bytes);
            let digits = encode_base62_u128(u128::from_be_bytes(bytes));
            let id: String = digits.chars().skip(14).collect();
            if id.contains(|c: char| c.is_ascii_alphabetic()) {
                return id;
            }
        }
    }

    /// Returns a random base62 token with 256 bits, which are 44 characters.
    pub fn token(&mut self) -> String {
        encode_base62(&self.bytes())
    }
}

/// Encodes 32 bytes in base62, each half in a fixed width of 22 characters.
pub fn encode_base62(bytes: &[u8; 32]) -> String {
    let (high, low) = bytes.split_at(16);
    let number = |half: &[u8]| half.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
    format!("{}{}", encode_base62_u128(number(high)), encode_base62_u128(number(low)))
}

/// Encodes a 128-bit number in base62, in a fixed width of 22 characters.
pub fn encode_base62_u128(number: u128) -> String {
    format!("{:0>22}", base62::encode(number))
}

/// The signing secret of a data file. Each purpose has its own subkey.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningSecret {
    /// The secret of the new data file. Key tags always use it, so that keys survive a rotation.
    first: [u8; 32],
    /// The secret of all other purposes since the last rotation, if there was one.
    renewed: Option<[u8; 32]>,
}

/// The purpose of a subkey. One subkey reveals nothing about another.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// The tag at the end of every personal API key.
    KeyTag,
    /// The mark in exports that shows whether API keys are valid in another installation.
    KeyOrigin,
    /// `live_events_token`.
    LiveEvents,
    /// The tokens of invite links in mails, which prove the address.
    InviteMail,
    /// The tokens of invite links that are passed on in another way, which do not prove the address.
    InviteLink,
    /// The tokens of public pages.
    Sharing,
    /// The digests of the secrets of console sessions and of the codes of sign-in links.
    Session,
}

impl Purpose {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::KeyTag => b"steward key tag 1",
            Self::KeyOrigin => b"steward key origin 1",
            Self::LiveEvents => b"steward live events token 1",
            Self::InviteMail => b"steward invite mail token 1",
            Self::InviteLink => b"steward invite link token 1",
            Self::Sharing => b"steward sharing token 1",
            Self::Session => b"steward session 1",
        }
    }
}

impl SigningSecret {
    /// Creates the secret of a new data file.
    pub fn new(rng: &mut SeededRng) -> Self {
        Self::from_parts(rng.bytes(), None)
    }

    /// Creates a secret from the parts that a data file stores.
    pub const fn from_parts(first: [u8; 32], renewed: Option<[u8; 32]>) -> Self {
        Self { first, renewed }
    }

    /// Rotates the secret: every subkey changes, except that of the key tags.
    #[must_use]
    pub fn renewed(&self, rng: &mut SeededRng) -> Self {
        Self::from_parts(self.first, Some(rng.bytes()))
    }

    /// Returns the parts that a data file stores.
    pub const fn parts(&self) -> (&[u8; 32], Option<&[u8; 32]>) {
        (&self.first, self.renewed.as_ref())
    }

    /// Returns the subkey for `purpose`.
    ///
    /// # Errors
    /// Does not fail in practice: HKDF-SHA256 can produce 32 bytes.
    pub fn subkey(&self, purpose: Purpose) -> Result<[u8; 32]> {
        let root = match purpose {
            Purpose::KeyTag | Purpose::KeyOrigin => &self.first,
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
