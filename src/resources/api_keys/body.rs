//! The JSON of an API key.

use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId};
use crate::json::{Array, Object};
use crate::store::{Order, Row, Tx, Window};
use crate::time::Timestamp;

use super::{ApiKey, BY_USER, last_used_at};

/// A personal API key.
#[derive(ToSchema)]
#[schema(as = PersonalAPIKey)]
pub struct PersonalApiKeyBody {
    /// The id of the key.
    pub id: ApiKeyId,
    /// The name of the key.
    pub label: String,
    /// The value to send as `Authorization: Bearer`. Shown only when the key is created or rolled, null otherwise.
    pub value: Option<String>,
    /// The first four characters of the value, `...`, and the last four.
    pub mask_value: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// When the key was last used, to within an hour.
    pub last_used_at: Option<Timestamp>,
    /// When the value was last replaced.
    pub last_rolled_at: Option<Timestamp>,
    /// The user that the key belongs to.
    pub user_id: UserId,
    /// The scopes of the key.
    pub scopes: Vec<String>,
    /// The projects that the key is limited to; empty for no limit.
    pub scoped_teams: Vec<ProjectId>,
    /// The organizations that the key is limited to; empty for no limit.
    pub scoped_organizations: Vec<OrganizationId>,
    /// When the key expires; null for never.
    pub expires_at: Option<Timestamp>,
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
    let mut json = Vec::with_capacity(512);
    write(tx, &key, value, &mut json)?;
    Ok(Versioned::new(version, json))
}

/// Returns all keys of a user, newest first, as a JSON array. [`issue`](super::issue) limits their number.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list(tx: &impl Tx, user: UserId) -> Result<Vec<u8>> {
    let mut keys: Vec<ApiKey> = Vec::new();
    tx.walk(&BY_USER, &user, Window::all(Order::Ascending), |row| {
        keys.push(row.into_record()?);
        Ok(())
    })?;
    keys.sort_by_key(|key| (key.fields.created_at, key.meta.id));
    let mut out = Vec::with_capacity(512 * keys.len() + 2);
    let mut array = Array::begin(&mut out);
    for key in keys.iter().rev() {
        array.item(|out| write(tx, key, None, out))?;
    }
    array.end();
    Ok(out)
}

fn write(tx: &impl Tx, key: &ApiKey, value: Option<&str>, out: &mut Vec<u8>) -> Result<()> {
    let ApiKey { meta, fields } = key;
    Object::begin(out)
        .field("id", &meta.id)?
        .field("label", &fields.label)?
        .field("value", &value)?
        .field("mask_value", &fields.mask_value)?
        .field("created_at", &fields.created_at)?
        .field("last_used_at", &last_used_at(tx, meta.id)?)?
        .field("last_rolled_at", &fields.last_rolled_at)?
        .field("user_id", &meta.user)?
        .field("scopes", &meta.scopes)?
        .field("scoped_teams", &meta.projects)?
        .field("scoped_organizations", &meta.organizations)?
        .field("expires_at", &meta.expires_at)?
        .end();
    Ok(())
}
