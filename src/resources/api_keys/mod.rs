//! Personal API keys: the credentials that a program uses to act for a user. See `docs/spec/api-keys.md`.
//!
//! A key is stored as the Argon2id hash of its secret, never in plain text. [`IssuedKey`] has the text of a new key,
//! and [`parse_key`] reads the text that a request presents.

pub mod api;
pub mod http;
mod issuing;
mod key_text;
mod permissions;
mod scopes;

use std::time::Duration;

use crate::ids::{ApiKeyId, made_at};
use crate::input::Name;
use crate::resources::shared::prelude::*;
use crate::resources::users::User;

pub use api::{
    PersonalApiKeyAccess, PersonalApiKeyFields, PersonalApiKeyPatch, RECORDS, RollFields, body,
    body_with, list,
};
use issuing::get_manageable;
pub use issuing::{get_own, issuable_permissions, issue, require_issuable, revoke, update};
pub use key_text::{IssuedKey, RetiredSecret, TagKey, parse as parse_key};
pub use permissions::KeyPermissions;
use permissions::exceeds;
pub use scopes::{Scopes, includes_scope, is_scope};

/// A personal API key.
#[derive(Clone, PartialEq)]
pub struct ApiKey {
    /// The fields that every request needs.
    pub meta: Meta,
    /// The fields that lists show.
    pub fields: Fields,
}

/// The fields of a key that every request needs.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The public id of the key.
    pub id: ApiKeyId,
    /// The user that the key belongs to.
    pub user: UserId,
    /// The Argon2id hash of its secret, as a PHC string.
    pub hash: String,
    /// The previous secret, if it was rolled with a grace period.
    pub retired: Option<RetiredSecret>,
    /// The scopes of the key.
    pub scopes: Scopes,
    /// The organizations that the key is limited to; empty for no limit.
    pub organizations: Vec<OrganizationId>,
    /// The projects that the key is limited to; empty for no limit.
    pub projects: Vec<ProjectId>,
    /// When the key expires; `None` for never.
    pub expires_at: Option<Timestamp>,
}

impl Meta {
    /// Returns whether the key has expired. One with an end that was created while the clock stood ahead is no longer valid,
    /// although its end is far away.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        let is_current = |end: Timestamp| end.is_end_of_current_since(made_at(self.id.0), now);
        self.expires_at.is_some_and(|end| !is_current(end))
    }
}

/// The fields of a key that lists show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fields {
    /// The name of the key.
    pub label: String,
    /// The first four characters of the value, `...`, and the last four.
    pub mask_value: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// When its secret was last replaced.
    pub last_rolled_at: Option<Timestamp>,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey").field("id", &self.meta.id).finish_non_exhaustive()
    }
}

/// The keys of a user, oldest first.
pub const BY_USER: Index<ApiKey, UserId> =
    Index::many(Table::ApiKeysByUser, |key| Some(key.meta.user));

impl_record!(ApiKey {
    table: ApiKeys,
    key: |api_key| -> ApiKeyId { api_key.meta.id },
    parts: meta: Meta, fields: Fields,
    indexes: [&BY_USER],
    owner: |_, _| Ok(None),
    references: |api_key| [Reference::to::<User>(&api_key.meta.user)],
});

/// When a key was last used. A separate record, because a use does not change the key.
#[derive(Serialize, Deserialize)]
pub struct ApiKeyUse {
    /// The id of the key.
    pub key: ApiKeyId,
    /// The time of the last recorded use, at most an hour before the last use.
    pub last_used_at: Timestamp,
}

impl_record!(ApiKeyUse {
    table: ApiKeyUses,
    key: |usage| -> ApiKeyId { usage.key },
    owner: |_, _| Ok(None),
    references: |usage| [Reference::to::<ApiKey>(&usage.key)],
});

/// Creates a key whose permissions no other key limits, for the operator and for signup. Its text was created and its
/// secret hashed before the transaction began.
///
/// # Errors
/// 400 at `label`, `scoped_organizations` or `scoped_teams`; 404 if the user was deleted.
pub fn create(
    tx: &mut WriteTx<'_>,
    issued: &IssuedKey,
    label: &str,
    permissions: KeyPermissions,
    now: Timestamp,
) -> Result<()> {
    let label = Name::<40>::read(&label.into()).map_err(|error| error.with_attr_prefix("label"))?;
    issuing::require_organizations(tx, permissions.user, &permissions.organizations)?;
    issuing::require_teams(tx, permissions.user, &permissions.projects)?;
    issuing::put_new(tx, issued, label, permissions, now)
}

/// Deletes a key with its last use. Requests with the key fail from the next one on.
///
/// # Errors
/// 404 if the key does not exist.
pub fn remove(tx: &mut WriteTx<'_>, id: ApiKeyId) -> Result<()> {
    tx.remove::<ApiKey>(&id)?.ok_or_else(Error::not_found)?;
    tx.remove::<ApiKeyUse>(&id)?;
    tx.remove::<Grantors>(&id)?;
    Ok(())
}

/// Deletes all keys of a user.
pub fn remove_all(tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
    for id in tx.keys(&BY_USER, &user, usize::MAX)? {
        remove(tx, id)?;
    }
    Ok(())
}

/// The minimum time between two recorded uses of a key.
pub const USE_RECORD_INTERVAL: Duration = Duration::from_hours(1);

/// Returns the last recorded use of a key.
pub fn last_used_at(tx: &dyn Raw, id: ApiKeyId) -> Result<Option<Timestamp>> {
    Ok(tx.meta::<ApiKeyUse>(&id)?.map(|used| used.last_used_at))
}

/// Records the use of a key, unless a use was recorded within the last hour or the key was deleted.
pub fn record_use(tx: &mut WriteTx<'_>, id: ApiKeyId, now: Timestamp) -> Result<()> {
    let recent = last_used_at(tx, id)?
        .is_some_and(|moment| moment.is_begin_of_current(USE_RECORD_INTERVAL, now));
    if recent || !tx.exists::<ApiKey>(&id)? {
        return Ok(());
    }
    tx.put(&ApiKeyUse { key: id, last_used_at: now })
}

/// Checks that the caller may roll a key.
///
/// # Errors
/// The same as [`rotate`].
pub fn require_can_rotate(
    tx: &dyn Raw,
    grantor: &KeyPermissions,
    id: ApiKeyId,
    sent: &Parsed<RollFields>,
) -> Result<()> {
    get_manageable(tx, grantor, id)?;
    sent.get().map(drop)
}

/// Gives a key the issued secret, which can never have more access than the caller's key has now. The old secret remains
/// valid for `grace_seconds`; the secret before it becomes invalid.
///
/// # Errors
/// 404 if the caller's user has no such key, 403 if it has more access than the caller's key, 400 for an invalid field.
pub fn rotate(
    tx: &mut WriteTx<'_>,
    grantor: &KeyPermissions,
    issued: &IssuedKey,
    sent: &Parsed<RollFields>,
    now: Timestamp,
) -> Result<()> {
    let mut key = get_manageable(tx, grantor, issued.id)?;
    let grace = sent.get()?.grace_seconds.unwrap_or(0);
    let hash = std::mem::replace(&mut key.meta.hash, issued.hash.clone());
    let ends_at = now.plus_seconds(grace);
    key.meta.retired = (grace > 0).then_some(RetiredSecret { hash, ends_at });
    key.fields.mask_value.clone_from(&issued.mask_value);
    key.fields.last_rolled_at = Some(now);
    tx.put(&key)?;
    record_grantor(tx, issued.id, grantor)
}

/// The permissions of the keys that created the current and the previous value of a key, at that time. The operator and
/// signup create values without such a limit. Most keys have none, so the record is separate from the key.
///
/// An update cannot give a key more than each of them had. Otherwise a caller could create a value with a weak key and use
/// it after an update gave the key more permissions.
#[derive(Serialize, Deserialize)]
pub struct Grantors {
    key: ApiKeyId,
    /// The permissions of the key that created the current value.
    current: KeyPermissions,
    /// The permissions of the key that created the previous value, if a key did.
    retired: Option<KeyPermissions>,
}

impl Grantors {
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
fn record_grantor(tx: &mut WriteTx<'_>, id: ApiKeyId, grantor: &KeyPermissions) -> Result<()> {
    let retired = tx.meta::<Grantors>(&id)?.map(|grantors| grantors.current);
    tx.put(&Grantors { key: id, current: grantor.clone(), retired })
}

/// Checks that `wanted` is within the permissions of every key that created a value which is valid or may become valid
/// again.
///
/// # Errors
/// 403 if one of those keys had fewer permissions.
fn require_within_grantors(
    tx: &dyn Raw,
    key: &Meta,
    wanted: &KeyPermissions,
    now: Timestamp,
) -> Result<()> {
    let Some(Grantors { current, retired, .. }) = tx.meta::<Grantors>(&key.id)? else {
        return Ok(());
    };
    let retired = retired.filter(|_| key.is_in_grace(now));
    for grantor in [current].iter().chain(&retired) {
        if let Some(fields) = exceeds(tx, wanted, grantor)? {
            return Err(Error::denied(format!(
                "A value of this API key was created by a key with less access: {fields}. Roll the key without a grace period first."
            )));
        }
    }
    Ok(())
}
