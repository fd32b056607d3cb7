//! What the secrets of a key are told apart and verified by: a keyed hash of each, kept beside the key's Argon2id hash.
//!
//! A secret has 256 random bits, so a fast hash of it is as hard to turn back as a slow one. That the digest of a
//! presented secret is the stored one proves the secret, and costs microseconds where Argon2 costs milliseconds.
//! Argon2 verifies only a secret whose digest is not known: one of a data file that was made before digests were
//! kept, on its first use.

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::error::Result;
use crate::ids::ApiKeyId;
use crate::store::{Owner, Record, Reference, Table, Tx, WriteTx};
use crate::time::Timestamp;

use super::{ApiKey, Head};

/// The digest of a secret of a key: 128 bits of an HMAC over key id and secret, under a key of the data file. It has
/// no Debug, and is compared in constant time.
#[derive(Clone, Serialize, Deserialize)]
pub struct SecretDigest(pub [u8; 16]);

impl SecretDigest {
    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// The digests of a key's secrets. A key of an older data file has none until it is used or rolled.
#[derive(Serialize, Deserialize)]
pub struct Verifiers {
    pub(super) key: ApiKeyId,
    /// Of the secret that the key has.
    pub(super) current: SecretDigest,
    /// The secret before it, if a roll gave that a grace.
    pub(super) retired: Option<Retired>,
}

/// A secret that was replaced, and opens the key until its grace ends.
#[derive(Serialize, Deserialize)]
pub(super) struct Retired {
    /// Its Argon2id hash, as a PHC string.
    pub(super) hash: String,
    /// None while only the hash is known.
    pub(super) digest: Option<SecretDigest>,
    /// When the grace ends.
    pub(super) ends_at: Timestamp,
}

impl Record for Verifiers {
    const TABLE: Table = Table::ApiKeyVerifiers;
    type Key = ApiKeyId;
    type Head = Self;
    type Shown = ();

    fn key(&self) -> ApiKeyId {
        self.key
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(None)
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<ApiKey>(&self.key)]
    }
}

/// The stored hash that a presented secret may belong to.
pub struct Candidate {
    /// The Argon2id hash, as a PHC string.
    pub hash: String,
    /// Whether the secret's digest proves that the hash is its own. If not, only Argon2 can tell.
    pub is_proven: bool,
}

/// Returns the stored hash that a secret with this digest may belong to, or none if the secret opens nothing. There is
/// never more than one, so a presented key costs one Argon2 run at the most.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find_candidate(tx: &impl Tx, key: Head, digest: &SecretDigest) -> Result<Option<Candidate>> {
    let Some(known) = tx.head::<Verifiers>(&key.id)? else {
        return Ok(Some(Candidate { hash: key.hash, is_proven: false }));
    };
    if known.current.is(digest) {
        return Ok(Some(Candidate { hash: key.hash, is_proven: true }));
    }
    Ok(known.retired.and_then(|Retired { hash, digest: retired, .. }| match retired {
        Some(retired) => retired.is(digest).then_some(Candidate { hash, is_proven: true }),
        None => Some(Candidate { hash, is_proven: false }),
    }))
}

/// Records the digest of a secret that Argon2 found to belong to `hash`, unless it is known or the key has another
/// hash by now.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn record_digest(
    tx: &mut WriteTx<'_>,
    id: ApiKeyId,
    hash: &str,
    digest: &SecretDigest,
) -> Result<()> {
    match tx.head::<Verifiers>(&id)? {
        None if tx.head::<ApiKey>(&id)?.is_some_and(|key| key.hash == hash) => {
            tx.put(&Verifiers { key: id, current: digest.clone(), retired: None })
        }
        Some(Verifiers { key, current, retired: Some(retired) })
            if retired.hash == hash && retired.digest.is_none() =>
        {
            let retired = Some(Retired { digest: Some(digest.clone()), ..retired });
            tx.put(&Verifiers { key, current, retired })
        }
        _ => Ok(()),
    }
}

/// A key as the secret with this hash holds it: until its own end the current one, until the end of its grace at
/// the latest the one before. None if the secret is neither.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn held_by(tx: &impl Tx, key: Head, hash: &str) -> Result<Option<Head>> {
    if key.hash == hash {
        return Ok(Some(key));
    }
    let retired = tx.head::<Verifiers>(&key.id)?.and_then(|known| known.retired);
    Ok(retired.filter(|retired| retired.hash == hash).map(|retired| {
        let end = key.expires_at.map_or(retired.ends_at, |end| end.min(retired.ends_at));
        Head { expires_at: Some(end), ..key }
    }))
}

/// Whether the secret that a key had before its current one is still let in.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn is_in_grace(tx: &impl Tx, id: ApiKeyId, now: Timestamp) -> Result<bool> {
    let retired = tx.head::<Verifiers>(&id)?.and_then(|known| known.retired);
    Ok(retired.is_some_and(|retired| now < retired.ends_at))
}
