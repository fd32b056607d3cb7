//! Verifies secrets of keys by a keyed hash, stored beside the key's Argon2id hash.
//!
//! A secret has 256 random bits, so a fast hash of it is as hard to invert as a slow one. If the digest of a presented
//! secret equals the stored digest, the secret is verified, in microseconds where Argon2 takes milliseconds.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::error::Result;
use crate::ids::ApiKeyId;
use crate::store::{Reference, Tx, impl_record};
use crate::time::Timestamp;

use super::{ApiKey, Meta};

/// The digest of a secret of a key: 128 bits of an HMAC over key id and secret, with a key of the data file. Compared
/// in constant time. Not `Debug`, so that logs cannot contain it.
#[derive(Clone, Serialize, Deserialize)]
pub struct SecretDigest(pub [u8; 16]);

impl SecretDigest {
    fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// The digests of a key's secrets. Every key has such a record.
#[derive(Serialize, Deserialize)]
pub struct Verifiers {
    pub(super) key: ApiKeyId,
    /// The digest of the current secret.
    pub(super) current: SecretDigest,
    /// The previous secret, if it was rolled with a grace period.
    pub(super) retired: Option<RetiredSecret>,
}

impl Verifiers {
    /// Returns the id of the key.
    pub const fn id(&self) -> ApiKeyId {
        self.key
    }
}

/// The longest grace period.
const MAX_GRACE: Duration = Duration::from_hours(24);

/// A replaced secret, valid until its grace period expires.
#[derive(Serialize, Deserialize)]
pub(super) struct RetiredSecret {
    /// Its Argon2id hash, as a PHC string.
    pub(super) hash: String,
    /// Its digest.
    pub(super) digest: SecretDigest,
    /// When the grace period expires.
    pub(super) ends_at: Timestamp,
}

impl RetiredSecret {
    fn is_in_grace(&self, now: Timestamp) -> bool {
        self.ends_at.is_end_of_current(MAX_GRACE, now)
    }
}

impl_record!(Verifiers {
    table: ApiKeyVerifiers,
    key: |verifiers| -> ApiKeyId { verifiers.key },
    owner: |_, _| Ok(None),
    references: |verifiers| [Reference::to::<ApiKey>(&verifiers.key)],
});

/// Returns the stored hash of the secret with this digest, or `None` if the key has no such secret. It does not check
/// whether the secret or its grace period has expired.
pub fn find_hash(tx: &impl Tx, key: Meta, digest: &SecretDigest) -> Result<Option<String>> {
    let Some(known) = tx.meta::<Verifiers>(&key.id)? else { return Ok(None) };
    if known.current.matches(digest) {
        return Ok(Some(key.hash));
    }
    let retired = known.retired.filter(|retired| retired.digest.matches(digest));
    Ok(retired.map(|retired| retired.hash))
}

/// Returns the key as the secret with this hash may use it, or `None` if the key no longer has that secret. For the
/// previous secret, the key expires with the grace period at the latest.
pub fn key_for_secret(tx: &impl Tx, key: Meta, hash: &str, now: Timestamp) -> Result<Option<Meta>> {
    if key.hash == hash {
        return Ok(Some(key));
    }
    let retired = tx.meta::<Verifiers>(&key.id)?.and_then(|known| known.retired);
    let is_valid = |retired: &RetiredSecret| retired.hash == hash && retired.is_in_grace(now);
    Ok(retired.filter(is_valid).map(|retired| {
        let end = key.expires_at.map_or(retired.ends_at, |end| end.min(retired.ends_at));
        Meta { expires_at: Some(end), ..key }
    }))
}

/// Returns whether the grace period of the previous secret still runs.
pub(super) fn is_in_grace(tx: &impl Tx, id: ApiKeyId, now: Timestamp) -> Result<bool> {
    let retired = tx.meta::<Verifiers>(&id)?.and_then(|known| known.retired);
    Ok(retired.is_some_and(|retired| retired.is_in_grace(now)))
}
