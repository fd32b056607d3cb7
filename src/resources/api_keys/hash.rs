//! Argon2id hashes of keys' secrets, as PHC strings.
//!
//! A secret has 256 random bits, so no dictionary and no budget guesses it, and a cheap run is enough (see
//! `SECURITY.md`). Each stored hash names its parameters, so they can be raised for new keys.

use std::time::Duration;

use argon2::password_hash;
use argon2::{Argon2, Params, PasswordHasher, PasswordVerifier};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::time::Timestamp;

use super::Meta;
use super::key_text::PresentedSecret;

/// The memory of a run, in KiB. A run takes less than half a millisecond.
const MEMORY: u32 = 1024;
/// The number of passes over the memory.
const PASSES: u32 = 1;
/// The number of lanes.
const LANES: u32 = 1;

/// The longest grace period.
const MAX_GRACE: Duration = Duration::from_hours(24);

/// A replaced secret, valid until its grace period expires.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RetiredSecret {
    /// Its Argon2id hash, as a PHC string.
    pub(super) hash: String,
    /// When the grace period expires.
    pub(super) ends_at: Timestamp,
}

impl RetiredSecret {
    fn is_in_grace(&self, now: Timestamp) -> bool {
        self.ends_at.is_end_of_current(MAX_GRACE, now)
    }
}

impl PresentedSecret {
    /// Returns the hash of this secret with this salt.
    pub(super) fn hash(&self, salt: &[u8; 16]) -> Result<String> {
        let params = Params::new(MEMORY, PASSES, LANES, None).map_err(Error::internal)?;
        let hash = Argon2::from(params).hash_password_with_salt(self.as_bytes(), salt);
        hash.map(|hash| hash.to_string()).map_err(Error::internal)
    }

    /// Returns whether `hash` is the hash of this secret. Takes one run of Argon2.
    fn matches(&self, hash: &str) -> Result<bool> {
        match Argon2::default().verify_password(self.as_bytes(), hash) {
            Ok(()) => Ok(true),
            Err(password_hash::Error::PasswordInvalid) => Ok(false),
            Err(error) => Err(Error::internal(error)),
        }
    }
}

impl Meta {
    /// Returns the stored hash of this secret, or `None` if the key has no such secret. It does not check whether the
    /// secret or its grace period has expired.
    ///
    /// # Errors
    /// 500 if a stored hash is no PHC string.
    pub fn find_hash(&self, secret: &PresentedSecret) -> Result<Option<&str>> {
        let retired = self.retired.as_ref().map(|retired| retired.hash.as_str());
        for hash in [self.hash.as_str()].into_iter().chain(retired) {
            if secret.matches(hash)? {
                return Ok(Some(hash));
            }
        }
        Ok(None)
    }

    /// Returns the key as the secret with this hash may use it, or `None` if the key no longer has that secret. For the
    /// previous secret, the key expires with the grace period at the latest.
    pub fn for_secret(self, hash: &str, now: Timestamp) -> Option<Self> {
        if self.hash == hash {
            return Some(self);
        }
        let is_valid = |retired: &&RetiredSecret| retired.hash == hash && retired.is_in_grace(now);
        let ends_at = self.retired.as_ref().filter(is_valid)?.ends_at;
        let end = self.expires_at.map_or(ends_at, |end| end.min(ends_at));
        Some(Self { expires_at: Some(end), ..self })
    }

    /// Returns whether the grace period of the previous secret still runs.
    pub(super) fn is_in_grace(&self, now: Timestamp) -> bool {
        self.retired.as_ref().is_some_and(|retired| retired.is_in_grace(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ApiKeyId;
    use crate::resources::api_keys::key_text::{KeyText, TagKey};
    use crate::secret::Seed;

    fn secret() -> PresentedSecret {
        let tags = TagKey::new(&[7; 32]).expect("a tag key");
        let mut rng = Seed::generate().rng();
        let id = ApiKeyId(rng.uuid(Timestamp::from_micros(0)));
        KeyText::generate(&tags, id, &mut rng).secret
    }

    #[test]
    fn secret_matches_only_its_own_hash_whatever_its_parameters() {
        let (mine, other) = (secret(), secret());
        let hash = mine.hash(&[3; 16]).expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=1024,t=1,p=1$"), "{hash}");
        let dearer = Argon2::from(Params::new(2048, 2, 1, None).expect("parameters"));
        let dearer = dearer.hash_password_with_salt(mine.as_bytes(), &[3; 16]).expect("a hash");
        for hash in [hash, dearer.to_string()] {
            assert!(mine.matches(&hash).expect("a hash") && !other.matches(&hash).expect("a hash"));
        }
        assert_eq!(mine.matches("text").expect_err("no PHC string").status(), 500);
    }
}
