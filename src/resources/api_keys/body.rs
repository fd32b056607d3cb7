//! The JSON of an API key.

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId};
use crate::json::{Array, WriteJson, output};
use crate::store::{Order, Row, Tx, Window};
use crate::time::Timestamp;

use super::{ApiKey, BY_USER, Scopes, last_used_at};

output! {
    /// A personal API key.
    pub struct PersonalApiKeyBody<'a> as PersonalAPIKey {
        /// The id of the key.
        id: ApiKeyId,
        /// The name of the key.
        label: &'a str as String,
        /// The value to send as `Authorization: Bearer`. Shown only when the key is created or rolled, null otherwise.
        value: Option<&'a str> as Option<String>,
        /// The first four characters of the value, `...`, and the last four.
        mask_value: &'a str as String,
        /// When the key was created.
        created_at: Timestamp,
        /// When the key was last used, to within an hour.
        last_used_at: Option<Timestamp>,
        /// When the value was last replaced.
        last_rolled_at: Option<Timestamp>,
        /// The user that the key belongs to.
        user_id: UserId,
        /// The scopes of the key.
        scopes: &'a Scopes as Vec<String>,
        /// The projects that the key is limited to; empty for no limit.
        scoped_teams: &'a [ProjectId] as Vec<ProjectId>,
        /// The organizations that the key is limited to; empty for no limit.
        scoped_organizations: &'a [OrganizationId] as Vec<OrganizationId>,
        /// When the key expires; null for never.
        expires_at: Option<Timestamp>,
    }
}

/// Returns the JSON of a key, without its value.
///
/// A use of the key changes `last_used_at` but not the version: otherwise a client that updates its own key would
/// invalidate its `ETag` with every request.
///
/// # Errors
/// 404 if the key does not exist.
pub fn body(tx: &impl Tx, id: ApiKeyId) -> Result<Versioned> {
    body_with(tx, id, None)
}

/// Returns the JSON of a key, with its value if the key was just created or rolled.
///
/// # Errors
/// 404 if the key does not exist.
pub fn body_with(tx: &impl Tx, id: ApiKeyId, value: Option<&str>) -> Result<Versioned> {
    let read = |row: Row<'_, ApiKey>| Ok((row.version, row.into_record()?));
    let (version, key) = tx.view(&id, read)?.ok_or_else(Error::not_found)?;
    Ok(Versioned::new(version, body_of(tx, &key, value)?.to_json(512)?))
}

/// Returns all keys of a user, newest first, as a JSON array. [`issue`](super::issue) limits their number.
pub fn list(tx: &impl Tx, user: UserId) -> Result<Vec<u8>> {
    let mut keys: Vec<ApiKey> = Vec::new();
    tx.walk(&BY_USER, &user, Window::all(Order::Ascending), |row| {
        keys.push(row.into_record()?);
        Ok(())
    })?;
    keys.sort_by_key(|key| (key.fields.created_at, key.meta.id));
    let mut out = Vec::with_capacity(512 * keys.len() + 2);
    Array::write(&mut out, |array| {
        keys.iter().rev().try_for_each(|key| array.push(body_of(tx, key, None)?))
    })?;
    Ok(out)
}

fn body_of<'a>(
    tx: &impl Tx,
    key: &'a ApiKey,
    value: Option<&'a str>,
) -> Result<PersonalApiKeyBody<'a>> {
    let ApiKey { meta, fields } = key;
    Ok(PersonalApiKeyBody {
        id: meta.id,
        label: &fields.label,
        value,
        mask_value: &fields.mask_value,
        created_at: fields.created_at,
        last_used_at: last_used_at(tx, meta.id)?,
        last_rolled_at: fields.last_rolled_at,
        user_id: meta.user,
        scopes: &meta.scopes,
        scoped_teams: &meta.projects,
        scoped_organizations: &meta.organizations,
        expires_at: meta.expires_at,
    })
}
