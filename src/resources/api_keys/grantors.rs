//! Permissions of the keys that created or rolled a key. An update cannot give a key more than each of them had.
//!
//! Otherwise a caller could create a value with a weak key and use it after an update gave the key more permissions.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::ApiKeyId;
use crate::store::{Reference, Tx, WriteTx, impl_record};
use crate::time::Timestamp;

use super::permissions::exceeds;
use super::{ApiKey, KeyPermissions, Meta};

/// The permissions of the keys that created the current and the previous value of a key, at that time. The operator and
/// signup create values without such a limit. Most keys have none, so the record is separate from the key.
#[derive(Serialize, Deserialize)]
pub struct Grantors {
    key: ApiKeyId,
    /// The permissions of the key that created the current value.
    current: KeyPermissions,
    /// The permissions of the key that created the previous value, if a key did.
    retired: Option<KeyPermissions>,
}

impl Grantors {
    /// Returns the id of the key.
    pub const fn id(&self) -> ApiKeyId {
        self.key
    }

    /// Returns the permissions of the keys that created its values.
    pub fn permissions(&self) -> impl Iterator<Item = &KeyPermissions> {
        std::iter::once(&self.current).chain(&self.retired)
    }
}

impl_record!(Grantors {
    table: ApiKeyMakers,
    key: |grantors| -> ApiKeyId { grantors.key },
    owner: |_, _| Ok(None),
    references: |grantors| [Reference::to::<ApiKey>(&grantors.key)],
});

/// Records that a key with these permissions created a value of the key `id`.
pub(super) fn record(tx: &mut WriteTx<'_>, id: ApiKeyId, grantor: &KeyPermissions) -> Result<()> {
    let retired = tx.meta::<Grantors>(&id)?.map(|grantors| grantors.current);
    tx.put(&Grantors { key: id, current: grantor.clone(), retired })
}

/// Checks that `wanted` is within the permissions of every key that created a value which is valid or may become valid
/// again.
///
/// # Errors
/// 403 if one of those keys had fewer permissions.
pub(super) fn require_within_grantors(
    tx: &impl Tx,
    key: &Meta,
    wanted: &KeyPermissions,
    now: Timestamp,
) -> Result<()> {
    let Some(Grantors { current, retired, .. }) = tx.meta::<Grantors>(&key.id)? else {
        return Ok(());
    };
    let retired = retired.filter(|_| key.is_in_grace(now));
    for grantor in [current].iter().chain(&retired) {
        if let Some(excess) = exceeds(tx, wanted, grantor)? {
            return Err(Error::denied(format!(
                "A value of this API key was created by a key with less access: {}. Roll the key without a grace period first.",
                excess.fields()
            )));
        }
    }
    Ok(())
}
