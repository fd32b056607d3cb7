//! A key that was just created: the only value that has both its text and its hash.

use crate::error::Result;
use crate::ids::{ApiKeyId, UserId};
use crate::secret::SeededRng;

use super::key_text::{KeyText, TagKey};
use super::{NewApiKey, NewSecret};

/// A new API key with its hash. It has no `Debug`, because it contains the key's text.
pub struct IssuedKey {
    id: ApiKeyId,
    value: String,
    secret: NewSecret,
}

impl IssuedKey {
    /// Creates a key with a random secret and hashes the secret.
    pub fn generate(tags: &TagKey, id: ApiKeyId, rng: &mut SeededRng) -> Result<Self> {
        let new = KeyText::generate(tags, id, rng);
        let hash = new.secret.hash(&rng.salt())?;
        let secret = NewSecret { mask_value: new.mask(), hash };
        Ok(Self { id, value: new.value, secret })
    }

    /// Returns the public id.
    pub const fn id(&self) -> ApiKeyId {
        self.id
    }

    /// Returns the secret in its stored form.
    pub fn secret(&self) -> NewSecret {
        self.secret.clone()
    }

    /// Returns the whole text of the key.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the key of a user, without restrictions.
    pub fn to_new_api_key(&self, user: UserId, label: &str, scopes: &[&str]) -> NewApiKey {
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
}
