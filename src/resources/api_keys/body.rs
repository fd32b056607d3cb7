//! How a key is shown to its user (facts-crosscutting §a).

use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId};
use crate::json::{Array, Object};
use crate::store::{Order, Row, Tx, Window};
use crate::time::Timestamp;

use super::{ApiKey, BY_USER, last_used_at};

/// A personal API key, for the schema.
#[derive(ToSchema)]
#[schema(as = PersonalAPIKey)]
pub struct PersonalApiKeyBody {
    /// Its id.
    pub id: ApiKeyId,
    /// What its maker calls it.
    pub label: String,
    /// What is sent in `Authorization: Bearer`: shown once, when it was just made; null ever after.
    pub value: Option<String>,
    /// Its first four characters, `...`, its last four.
    pub mask_value: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to the hour.
    pub last_used_at: Option<Timestamp>,
    /// When its value was last replaced.
    pub last_rolled_at: Option<Timestamp>,
    /// Whose it is.
    pub user_id: UserId,
    /// What it may do.
    pub scopes: Vec<String>,
    /// The projects it is limited to; empty for no limit.
    pub scoped_teams: Vec<ProjectId>,
    /// The organizations it is limited to; empty for no limit.
    pub scoped_organizations: Vec<OrganizationId>,
    /// When it ends by itself; null for never.
    pub expires_at: Option<Timestamp>,
}

/// A key. Its value is not known any more. That it was used shows, but does not move its version: whoever is
/// about to change a key does so by a key that is in use.
///
/// # Errors
/// 404 for no such key.
pub fn body(tx: &impl Tx, id: ApiKeyId) -> Result<Versioned> {
    body_with(tx, id, None)
}

/// A key, with its value where that was just made: the only time that it is shown.
///
/// # Errors
/// 404 for no such key.
pub fn body_with(tx: &impl Tx, id: ApiKeyId, value: Option<&str>) -> Result<Versioned> {
    let read = |row: Row<'_, ApiKey>| Ok((row.version, row.into_record()?));
    let (version, key) = tx.view(&id, read)?.ok_or_else(Error::not_found)?;
    let mut json = Vec::with_capacity(512);
    write(tx, &key, value, &mut json)?;
    Ok(Versioned::new(version, json))
}

/// All keys of a user, newest first, as a JSON array. There are few: see [`issue`](super::issue).
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list(tx: &impl Tx, user: UserId) -> Result<Vec<u8>> {
    let mut keys: Vec<ApiKey> = Vec::new();
    tx.walk(&BY_USER, &user, Window::all(Order::Ascending), |row| {
        keys.push(row.into_record()?);
        Ok(())
    })?;
    keys.sort_by_key(|key| (key.shown.created_at, key.head.id));
    let mut out = Vec::with_capacity(512 * keys.len() + 2);
    let mut array = Array::begin(&mut out);
    for key in keys.iter().rev() {
        array.item(|out| write(tx, key, None, out))?;
    }
    array.end();
    Ok(out)
}

fn write(tx: &impl Tx, key: &ApiKey, value: Option<&str>, out: &mut Vec<u8>) -> Result<()> {
    let ApiKey { head, shown } = key;
    Object::begin(out)
        .field("id", &head.id)?
        .field("label", &shown.label)?
        .field("value", &value)?
        .field("mask_value", &shown.mask_value)?
        .field("created_at", &shown.created_at)?
        .field("last_used_at", &last_used_at(tx, head.id)?)?
        .field("last_rolled_at", &shown.last_rolled_at)?
        .field("user_id", &head.user)?
        .field("scopes", &head.scopes)?
        .field("scoped_teams", &head.projects)?
        .field("scoped_organizations", &head.organizations)?
        .field("expires_at", &head.expires_at)?
        .end();
    Ok(())
}
