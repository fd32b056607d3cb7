//! The text of a personal API key (decisions §2).
//!
//! ```text
//! phx_ | public id (22) | secret (44) | tag (6)
//! ```
//!
//! in base62, each part in a fixed width. The tag is an HMAC over id and secret under a key of the data
//! file, so that a guessed or mistyped key is told apart without Argon2, and without looking anything up.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{ApiKeyId, UserId};
use crate::resources::api_keys::{NewApiKey, NewSecret, SecretDigest};
use crate::secret::{Draw, base62_pair, base62_wide};

use super::hash::Hasher;

const PREFIX: &str = "phx_";
const ID: usize = 22;
const SECRET: usize = 44;
const TAG: usize = 6;

/// The key under which this data file tags its API keys.
#[derive(Clone)]
pub struct TagKey(Hmac<Sha256>);

impl TagKey {
    /// The tag key with these bytes.
    ///
    /// # Errors
    /// None in practice: HMAC takes keys of any length.
    pub fn new(bytes: &[u8; 32]) -> Result<Self> {
        Hmac::new_from_slice(bytes).map(Self).map_err(Error::internal)
    }

    fn tag(&self, id: &str, secret: &str) -> String {
        let [a, b, c, d, ..] = self.mac(id, secret);
        format!("{:0>TAG$}", base62::encode(u32::from_be_bytes([a, b, c, d])))
    }

    /// What the secret of a key is verified by, and told from the key's other secrets. It shares no bit with the tag,
    /// which everyone who sees the text of a key knows.
    pub fn digest(&self, id: ApiKeyId, secret: &PresentedSecret) -> SecretDigest {
        let full = self.mac(&base62_wide(id.0.as_u128()), &secret.0);
        let mut digest = [0; 16];
        digest.iter_mut().zip(full.iter().rev()).for_each(|(to, from)| *to = *from);
        SecretDigest(digest)
    }

    fn mac(&self, id: &str, secret: &str) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(id.as_bytes());
        mac.update(secret.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// A new key: shown once, then only its hash is known.
pub struct NewKey {
    /// Its public id.
    pub id: ApiKeyId,
    /// The whole text.
    pub value: String,
    /// The part that is hashed.
    pub secret: PresentedSecret,
}

impl NewKey {
    /// Draws the secret of a key.
    pub fn draw(tags: &TagKey, id: ApiKeyId, draw: &mut Draw) -> Self {
        let text = base62_wide(id.0.as_u128());
        let secret = base62_pair(&draw.bytes());
        let tag = tags.tag(&text, &secret);
        Self { id, value: format!("{PREFIX}{text}{secret}{tag}"), secret: PresentedSecret(secret) }
    }

    /// The key's first four characters, `...`, its last four.
    pub fn mask(&self) -> String {
        let end = self.value.len() - 4;
        format!("{PREFIX}...{}", &self.value[end..])
    }
}

/// A new key whose secret is hashed: what a write needs to store it, and its text, which is shown once. No
/// Debug.
pub struct MadeKey {
    id: ApiKeyId,
    value: String,
    secret: NewSecret,
}

impl MadeKey {
    /// Draws the secret of a key under a data file's tag key, and hashes it.
    ///
    /// # Errors
    /// 500 when Argon2 refuses, which it does not for secrets of this crate.
    pub fn draw(tags: &TagKey, hasher: &Hasher, id: ApiKeyId, draw: &mut Draw) -> Result<Self> {
        let new = NewKey::draw(tags, id, draw);
        let hash = hasher.hash(&new.secret, &draw.salt())?;
        let digest = tags.digest(id, &new.secret);
        let secret = NewSecret { mask_value: new.mask(), hash, digest };
        Ok(Self { id, value: new.value, secret })
    }

    /// Its public id.
    pub const fn id(&self) -> ApiKeyId {
        self.id
    }

    /// Its secret, as it is kept.
    pub fn secret(&self) -> NewSecret {
        self.secret.clone()
    }

    /// Its whole text.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The key of a user, without limits.
    pub fn of(&self, user: UserId, label: &str, scopes: &[&str]) -> NewApiKey {
        NewApiKey {
            user,
            label: label.to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            organizations: Vec::new(),
            projects: Vec::new(),
            expires_at: None,
            id: self.id,
            secret: self.secret(),
        }
    }

    /// What is shown of it, this once.
    pub fn shown(&self, label: &str, scopes: &[&str]) -> Value {
        json!({ "id": self.id, "value": self.value, "label": label, "scopes": scopes })
    }
}

/// The secret part of a presented key. Never shown.
#[derive(Clone)]
pub struct PresentedSecret(String);

impl PresentedSecret {
    /// What is hashed.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for PresentedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresentedSecret(..)")
    }
}

/// Takes a presented key apart; none where it has another form or its tag is wrong.
pub fn parse(tags: &TagKey, text: &str) -> Option<(ApiKeyId, PresentedSecret)> {
    let body = text.strip_prefix(PREFIX)?;
    if body.len() != ID + SECRET + TAG || !body.is_ascii() {
        return None;
    }
    let (id, rest) = body.split_at(ID);
    let (secret, tag) = rest.split_at(SECRET);
    let expected = tags.tag(id, secret);
    if !bool::from(expected.as_bytes().ct_eq(tag.as_bytes())) {
        return None;
    }
    let uuid = Uuid::from_u128(base62::decode(id).ok()?);
    Some((ApiKeyId(uuid), PresentedSecret(secret.to_owned())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secret::Seed;
    use crate::time::Timestamp;

    fn key() -> (TagKey, NewKey) {
        let tags = TagKey::new(&[7; 32]).expect("a tag key");
        let mut draw = Seed::take().draw();
        let id = ApiKeyId(draw.uuid(Timestamp::from_micros(1_700_000_000_000_000)));
        let new = NewKey::draw(&tags, id, &mut draw);
        (tags, new)
    }

    #[test]
    fn a_key_is_read_back_whole() {
        let (tags, new) = key();
        let (id, secret) = parse(&tags, &new.value).expect("its own key");
        assert_eq!((id, secret.as_bytes()), (new.id, new.secret.as_bytes()));
        assert_eq!(new.value.len(), 76);
        assert_eq!(new.mask().len(), 11);
    }

    #[test]
    fn another_files_tag_key_refuses_it() {
        let (_, new) = key();
        let other = TagKey::new(&[8; 32]).expect("a tag key");
        assert!(parse(&other, &new.value).is_none());
    }

    proptest! {
        #[test]
        fn one_changed_character_is_refused(at in 0usize..76, with in "[0-9A-Za-z_]") {
            let (tags, new) = key();
            let mut text = new.value.clone();
            text.replace_range(at..=at, &with);
            prop_assert_eq!(parse(&tags, &text).is_some(), text == new.value);
        }

        #[test]
        fn a_cut_off_key_is_refused(length in 0usize..76) {
            let (tags, new) = key();
            prop_assert!(parse(&tags, &new.value[..length]).is_none());
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in ".*") {
            let (tags, _) = key();
            prop_assert!(parse(&tags, &text).is_none());
        }
    }
}
