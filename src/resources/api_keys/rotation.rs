//! Rolls a key: replaces its value. The old value may remain valid for a grace period.

use crate::error::Result;
use crate::ids::ApiKeyId;
use crate::input::Parsed;
use crate::store::{Tx, WriteTx};
use crate::time::Timestamp;

use super::issuing::get_manageable;
use super::{KeyPermissions, NewSecret, RetiredSecret, RollFields, grantors};

/// Checks that the caller may roll a key.
///
/// # Errors
/// The same as [`rotate`].
pub fn require_can_rotate(
    tx: &impl Tx,
    grantor: &KeyPermissions,
    id: ApiKeyId,
    sent: &Parsed<RollFields>,
) -> Result<()> {
    get_manageable(tx, grantor, id)?;
    sent.get().map(drop)
}

/// Gives a key a new secret, which can never have more access than the caller's key has now. The old secret remains
/// valid for `grace_seconds`; the secret before it becomes invalid.
///
/// # Errors
/// 404 if the caller's user has no such key, 403 if it has more access than the caller's key, 400 for an invalid field.
pub fn rotate(
    tx: &mut WriteTx<'_>,
    grantor: &KeyPermissions,
    id: ApiKeyId,
    sent: &Parsed<RollFields>,
    secret: NewSecret,
    now: Timestamp,
) -> Result<()> {
    let mut key = get_manageable(tx, grantor, id)?;
    let grace = sent.get()?.grace_seconds.unwrap_or(0);
    let NewSecret { mask_value, hash } = secret;
    let hash = std::mem::replace(&mut key.meta.hash, hash);
    let ends_at = now.plus_seconds(grace);
    key.meta.retired = (grace > 0).then_some(RetiredSecret { hash, ends_at });
    key.fields.mask_value = mask_value;
    key.fields.last_rolled_at = Some(now);
    tx.put(&key)?;
    grantors::record(tx, id, grantor)
}
