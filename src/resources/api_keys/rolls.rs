//! Rolling a key: a new secret in the place of the old one, which may be let in for a while longer
//! (decisions §2, Issuing).

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::error::Result;
use crate::ids::ApiKeyId;
use crate::input::Parsed;
use crate::store::{Owner, Record, Reference, Table, Tx, WriteTx};
use crate::time::Timestamp;

use super::issuing::get_within;
use super::{ApiKey, Head, Holdings, NewSecret, RollFields, makers};

/// Tells a secret from others without telling it: a keyed hash of 128 bits.
#[derive(Clone, Serialize, Deserialize)]
pub struct SecretDigest(pub [u8; 16]);

impl SecretDigest {
    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// How the secrets of a key that was rolled are told apart. Most keys never are, so it is kept beside them.
#[derive(Serialize, Deserialize)]
pub struct Roll {
    key: ApiKeyId,
    /// Of the secret that the key has.
    current: SecretDigest,
    /// The secret before it, where it was given time.
    retired: Option<Retired>,
}

/// A secret on its way out.
#[derive(Serialize, Deserialize)]
struct Retired {
    /// Its Argon2id hash, as a PHC string.
    hash: String,
    /// None for a key's first secret, of which only the hash is known.
    digest: Option<SecretDigest>,
    /// From when on it opens nothing.
    ends_at: Timestamp,
}

impl Record for Roll {
    const TABLE: Table = Table::ApiKeyRolls;
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

/// The stored hash that a secret with this digest can match; none for one that a roll has put out of use. There
/// is never more than one, so that a presented key costs one Argon2 run at the most.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn hash_to_verify(tx: &impl Tx, key: Head, digest: &SecretDigest) -> Result<Option<String>> {
    let Some(roll) = tx.head::<Roll>(&key.id)? else { return Ok(Some(key.hash)) };
    if roll.current.is(digest) {
        return Ok(Some(key.hash));
    }
    let can_be = |retired: &Retired| retired.digest.as_ref().is_none_or(|known| known.is(digest));
    Ok(roll.retired.filter(can_be).map(|retired| retired.hash))
}

/// A key as the secret with this hash holds it: until its own end the current one, until the end of its grace at
/// the latest the one before. None where it is neither.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn held_by(tx: &impl Tx, key: Head, hash: &str) -> Result<Option<Head>> {
    if key.hash == hash {
        return Ok(Some(key));
    }
    let retired = tx.head::<Roll>(&key.id)?.and_then(|roll| roll.retired);
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
    let retired = tx.head::<Roll>(&id)?.and_then(|roll| roll.retired);
    Ok(retired.is_some_and(|retired| now < retired.ends_at))
}

/// Whether the holder may roll a key as asked, as things are: looked at before a secret is made for it.
///
/// # Errors
/// As [`roll`].
pub fn require_rollable(
    tx: &impl Tx,
    holder: &Holdings,
    id: ApiKeyId,
    sent: &Parsed<RollFields>,
) -> Result<()> {
    get_within(tx, holder, id)?;
    sent.get().map(drop)
}

/// Gives a key a new secret, which will never open more than the holder holds now. The one it had opens what the key
/// opens for `grace_seconds` more, and the one before that nothing from now on.
///
/// # Errors
/// 404 for no key of the holder's user; 403 for one that does not lie within the holder's; 400 for a field.
pub fn roll(
    tx: &mut WriteTx<'_>,
    holder: &Holdings,
    id: ApiKeyId,
    sent: &Parsed<RollFields>,
    secret: NewSecret,
    now: Timestamp,
) -> Result<()> {
    let mut key = get_within(tx, holder, id)?;
    let grace = sent.get()?.grace_seconds.unwrap_or(0);
    let NewSecret { mask_value, hash, digest } = secret;
    let before = tx.head::<Roll>(&id)?.map(|roll| roll.current);
    let hash = std::mem::replace(&mut key.head.hash, hash);
    let retired = Retired { hash, digest: before, ends_at: now.plus_seconds(grace) };
    key.shown.mask_value = mask_value;
    key.shown.last_rolled_at = Some(now);
    tx.put(&key)?;
    makers::note(tx, id, holder)?;
    tx.put(&Roll { key: id, current: digest, retired: (grace > 0).then_some(retired) })
}
