//! Rolling a key: a new secret in the place of the old one, which may be let in for a while longer.

use crate::error::Result;
use crate::ids::ApiKeyId;
use crate::input::Parsed;
use crate::store::{Tx, WriteTx};
use crate::time::Timestamp;

use super::issuing::get_within;
use super::verifiers::{Retired, Verifiers};
use super::{Holdings, NewSecret, RollFields, makers};

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
    let before = tx.head::<Verifiers>(&id)?.map(|known| known.current);
    let hash = std::mem::replace(&mut key.head.hash, hash);
    let retired = Retired { hash, digest: before, ends_at: now.plus_seconds(grace) };
    key.shown.mask_value = mask_value;
    key.shown.last_rolled_at = Some(now);
    tx.put(&key)?;
    makers::note(tx, id, holder)?;
    tx.put(&Verifiers { key: id, current: digest, retired: (grace > 0).then_some(retired) })
}
