//! The text of a personal API key:
//!
//! ```text
//! phx_ | public id (22) | secret (44) | tag (6)
//! ```
//!
//! Each part is base62 of a fixed width. The tag is an HMAC of id and secret with a key of the data file, so that a
//! guessed or mistyped key is rejected without Argon2 and without a look-up.
//!
//! The file stores an Argon2id hash of the secret, as a PHC string. A secret has 256 random bits, so no dictionary and no
//! budget guesses it, and a cheap run is enough (see `SECURITY.md`). Each stored hash names its parameters, so they can be
//! raised for new keys.

use std::time::Duration;

use argon2::{Argon2, Params, PasswordHasher, PasswordVerifier, password_hash};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::base::secret::encode_base62_u128;
use crate::ids::ApiKeyId;
use crate::resources::shared::prelude::*;

use super::Meta;

const PREFIX: &str = "phx_";
const ID_LENGTH: usize = 22;
const SECRET_LENGTH: usize = 44;
const TAG_LENGTH: usize = 6;

/// The key with which this data file tags its API keys.
#[derive(Clone)]
pub struct TagKey(Hmac<Sha256>);

impl TagKey {
    /// Creates a tag key from its bytes.
    ///
    /// # Errors
    /// Does not fail in practice: HMAC accepts keys of any length.
    pub fn new(bytes: &[u8; 32]) -> Result<Self> {
        Hmac::new_from_slice(bytes).map(Self).map_err(Error::internal)
    }

    fn tag(&self, id: &str, secret: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(id.as_bytes());
        mac.update(secret.as_bytes());
        let full: [u8; 32] = mac.finalize().into_bytes().into();
        let [a, b, c, d, ..] = full;
        format!("{:0>TAG_LENGTH$}", base62::encode(u32::from_be_bytes([a, b, c, d])))
    }
}

/// The secret part of a key in a request. Not `Debug`, so that logs cannot contain it.
#[derive(Clone)]
pub struct PresentedSecret(String);

/// Parses the text of a key. Returns `None` if its form or its tag is wrong.
pub fn parse(tags: &TagKey, text: &str) -> Option<(ApiKeyId, PresentedSecret)> {
    let body = text.strip_prefix(PREFIX)?;
    if body.len() != ID_LENGTH + SECRET_LENGTH + TAG_LENGTH || !body.is_ascii() {
        return None;
    }
    let (id, rest) = body.split_at(ID_LENGTH);
    let (secret, tag) = rest.split_at(SECRET_LENGTH);
    let expected = tags.tag(id, secret);
    if !bool::from(expected.as_bytes().ct_eq(tag.as_bytes())) {
        return None;
    }
    let uuid = Uuid::from_u128(base62::decode(id).ok()?);
    Some((ApiKeyId(uuid), PresentedSecret(secret.to_owned())))
}

/// A new API key with its hash. Its text is shown once; the data file stores only the hash. It has no `Debug`, because it
/// contains the key's text.
pub struct IssuedKey {
    /// The public id.
    pub id: ApiKeyId,
    /// The whole text of the key.
    pub value: String,
    /// The first four characters of the text, `...`, and the last four.
    pub mask_value: String,
    /// The Argon2id hash of the secret, as a PHC string.
    pub hash: String,
}

impl IssuedKey {
    /// Creates a key with a random secret and hashes the secret.
    pub fn generate(tags: &TagKey, id: ApiKeyId, rng: &mut SeededRng) -> Result<Self> {
        Self::with_secret(tags, id, rng.token(), rng)
    }

    /// Creates a key with this secret of 44 base62 digits, and hashes it.
    pub(crate) fn with_secret(
        tags: &TagKey,
        id: ApiKeyId,
        secret: String,
        rng: &mut SeededRng,
    ) -> Result<Self> {
        let (text, secret) = (encode_base62_u128(id.0.as_u128()), PresentedSecret(secret));
        let tag = tags.tag(&text, &secret.0);
        let value = format!("{PREFIX}{text}{}{tag}", secret.0);
        let mask_value = format!("{PREFIX}...{}", &value[value.len() - 4..]);
        let hash = secret.hash(&rng.salt())?;
        Ok(Self { id, value, mask_value, hash })
    }
}

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
        let hash = Argon2::from(params).hash_password_with_salt(self.0.as_bytes(), salt);
        hash.map(|hash| hash.to_string()).map_err(Error::internal)
    }

    /// Returns whether `hash` is the hash of this secret. Takes one run of Argon2.
    fn matches(&self, hash: &str) -> Result<bool> {
        match Argon2::default().verify_password(self.0.as_bytes(), hash) {
            Ok(()) => Ok(true),
            Err(password_hash::Error::PasswordInvalid) => Ok(false),
            Err(error) => Err(Error::internal(error)),
        }
    }
}

impl Meta {
    /// Returns the hashes of the secret and of the previous one.
    pub fn hashes(&self) -> impl Iterator<Item = &str> {
        let retired = self.retired.as_ref().map(|retired| retired.hash.as_str());
        [self.hash.as_str()].into_iter().chain(retired)
    }

    /// Returns the stored hash of this secret, or `None` if the key has no such secret. It does not check whether the
    /// secret or its grace period has expired.
    ///
    /// # Errors
    /// 500 if a stored hash is no PHC string.
    pub fn find_hash(&self, secret: &PresentedSecret) -> Result<Option<&str>> {
        for hash in self.hashes() {
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
    use proptest::prelude::*;

    use super::*;
    use crate::base::secret::Seed;

    fn key() -> (TagKey, ApiKeyId, IssuedKey) {
        let tags = TagKey::new(&[7; 32]).expect("a tag key");
        let mut rng = Seed::generate().rng();
        let id = ApiKeyId(rng.uuid(Timestamp::from_micros(1_700_000_000_000_000)));
        let new = IssuedKey::generate(&tags, id, &mut rng).expect("a key");
        (tags, id, new)
    }

    fn secret() -> PresentedSecret {
        let (tags, _, new) = key();
        parse(&tags, &new.value).expect("its own key").1
    }

    #[test]
    fn generated_key_parses_back() {
        let (tags, id, new) = key();
        let (parsed, secret) = parse(&tags, &new.value).expect("its own key");
        assert_eq!(parsed, id);
        assert!(secret.matches(&new.hash).expect("a hash"));
        assert_eq!((new.value.len(), new.mask_value.len()), (76, 11));
    }

    #[test]
    fn key_with_tag_from_another_file_is_rejected() {
        let (_, _, new) = key();
        assert!(parse(&TagKey::new(&[8; 32]).expect("a tag key"), &new.value).is_none());
    }

    proptest! {
        #[test]
        fn key_with_one_changed_character_is_rejected(at in 0usize..76, with in "[0-9A-Za-z_]") {
            let (tags, _, new) = key();
            let mut text = new.value.clone();
            text.replace_range(at..=at, &with);
            prop_assert_eq!(parse(&tags, &text).is_some(), text == new.value);
        }

        #[test]
        fn truncated_key_is_rejected(length in 0usize..76) {
            let (tags, _, new) = key();
            prop_assert!(parse(&tags, &new.value[..length]).is_none());
        }

        #[test]
        fn parsing_arbitrary_key_text_does_not_panic(text in ".*") {
            let (tags, ..) = key();
            prop_assert!(parse(&tags, &text).is_none());
        }
    }

    #[test]
    fn secret_matches_only_its_own_hash_whatever_its_parameters() {
        let (mine, other) = (secret(), secret());
        let hash = mine.hash(&[3; 16]).expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=1024,t=1,p=1$"), "{hash}");
        let dearer = Argon2::from(Params::new(2048, 2, 1, None).expect("parameters"));
        let dearer = dearer.hash_password_with_salt(mine.0.as_bytes(), &[3; 16]).expect("a hash");
        for hash in [hash, dearer.to_string()] {
            assert!(mine.matches(&hash).expect("a hash") && !other.matches(&hash).expect("a hash"));
        }
        assert_eq!(mine.matches("text").expect_err("no PHC string").status(), 500);
    }
}
