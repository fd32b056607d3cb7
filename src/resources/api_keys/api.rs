//! What the API reads and shows of API keys, and what API keys declare about their records. An entry of the activity
//! log never contains a key or its hash.

use std::collections::BTreeSet;

use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};

use crate::ids::ApiKeyId;
use crate::input::{
    DateTime, Identifier, Integer, ListOf, Name, Nullable, Required, Text, UuidField,
};
use crate::resources::members;
use crate::resources::organizations::Organization;
use crate::resources::shared::loggable::{FieldAction, public_fields, public_text};
use crate::resources::shared::prelude::*;

use super::{ApiKey, ApiKeyUse, BY_USER, Grantors, Meta, Scopes, last_used_at, remove_all, scopes};

/// The maximum number of organizations or projects that a key is limited to. Every request reads them.
const MAX_TENANTS: usize = 100;
/// The maximum number of scopes in a request.
const MAX_SCOPES: usize = 200;

/// A list of scopes, not empty.
pub struct ScopeList;

impl FieldType for ScopeList {
    type Value = Scopes;

    fn read(value: &Value) -> Result<Scopes> {
        Scopes::new(ListOf::<Text<100>, MAX_SCOPES>::read(value)?)
    }

    fn schema() -> Schema {
        let scope = ObjectBuilder::new().schema_type(Type::String).max_length(Some(100));
        let scope = scope.pattern(Some(scopes::pattern()));
        ArrayBuilder::new().items(scope).min_items(Some(1)).max_items(Some(MAX_SCOPES)).into()
    }
}

/// A list of projects without duplicates.
pub struct ProjectList;

impl FieldType for ProjectList {
    type Value = Vec<ProjectId>;

    fn read(value: &Value) -> Result<Self::Value> {
        let ids: BTreeSet<u64> =
            ListOf::<Identifier, MAX_TENANTS>::read(value)?.into_iter().collect();
        Ok(ids.into_iter().map(ProjectId).collect())
    }

    fn schema() -> Schema {
        ListOf::<Identifier, MAX_TENANTS>::schema()
    }
}

/// A list of organizations without duplicates. A value that is not a UUID fails with PostHog's error.
pub struct OrganizationList;

impl FieldType for OrganizationList {
    type Value = Vec<OrganizationId>;

    fn read(value: &Value) -> Result<Self::Value> {
        let mut ids = BTreeSet::new();
        for text in ListOf::<Text<100>, MAX_TENANTS>::read(value)? {
            let id = Uuid::try_parse(&text)
                .map_err(|_| Error::invalid("invalid_input", "Invalid organization UUID"))?;
            ids.insert(OrganizationId(id));
        }
        Ok(ids.into_iter().collect())
    }

    fn schema() -> Schema {
        ListOf::<UuidField, MAX_TENANTS>::schema()
    }
}

/// A [`DateTime`] of at most the end of the year 9999: a later one counts as that.
pub struct ExpiryField;

impl FieldType for ExpiryField {
    type Value = Timestamp;

    fn read(value: &Value) -> Result<Timestamp> {
        let moment = value.as_str().and_then(Timestamp::parse);
        moment.map_or_else(|| DateTime::read(value), |moment| Ok(moment.plus_seconds(0)))
    }

    fn schema() -> Schema {
        DateTime::schema()
    }
}

input! {
    /// The API key to create. Organizations, projects and expiry default to those of the key that makes the request.
    pub struct PersonalApiKeyFields {
        /// A name for the key.
        label: Required<Name<40>>,
        /// The scopes: `*`, or `object:read` and `object:write`. The key that makes the request must have them too.
        scopes: Required<ScopeList>,
        /// The projects that the key is limited to. Empty or null means no limit, which only a key without such a limit
        /// may request.
        scoped_teams: Nullable<ProjectList>,
        /// The organizations that the key is limited to. Empty or null means no limit, which only a key without such a
        /// limit may request.
        scoped_organizations: Nullable<OrganizationList>,
        /// When the key expires. Null means never, which only a key that never expires may request.
        expires_at: Nullable<ExpiryField>,
    }
}

input! {
    /// The access of a key that could be created. Organizations and projects default to those of the key that makes the
    /// request.
    pub struct PersonalApiKeyAccess {
        /// The scopes: `*`, or `object:read` and `object:write`. The key that makes the request must have them too.
        scopes: Required<ScopeList>,
        /// The projects that the key is limited to. Empty or null means no limit, which only a key without such a limit
        /// may request.
        scoped_teams: Nullable<ProjectList>,
        /// The organizations that the key is limited to. Empty or null means no limit, which only a key without such a
        /// limit may request.
        scoped_organizations: Nullable<OrganizationList>,
    }
}

input! {
    /// The fields of an API key to update. The key that makes the request must have the same access or more.
    pub struct PersonalApiKeyPatch {
        /// A name for the key.
        label: Name<40>,
        /// The scopes of the key.
        scopes: ScopeList,
        /// The projects that the key is limited to; empty or null for no limit.
        scoped_teams: Nullable<ProjectList>,
        /// The organizations that the key is limited to; empty or null for no limit.
        scoped_organizations: Nullable<OrganizationList>,
        /// When the key expires; null for never.
        expires_at: Nullable<ExpiryField>,
    }
}

input! {
    /// How to roll a key.
    pub struct RollFields {
        /// How many seconds the old value remains valid.
        grace_seconds: Integer<0, 86_400>,
    }
}

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
pub fn body(tx: &dyn Raw, id: ApiKeyId) -> Result<Versioned> {
    body_with(tx, id, None)
}

/// Returns the JSON of a key, with its value if the key was just created or rolled.
///
/// # Errors
/// 404 if the key does not exist.
pub fn body_with(tx: &dyn Raw, id: ApiKeyId, value: Option<&str>) -> Result<Versioned> {
    let read = |row: Row<'_, ApiKey>| Ok((row.version, row.into_record()?));
    let (version, key) = tx.view(&id, read)?.ok_or_else(Error::not_found)?;
    Ok(Versioned::new(version, body_of(tx, &key, value)?.to_json(512)?))
}

/// Returns all keys of a user, newest first, as a JSON array. [`issue`](super::issue) limits their number.
pub fn list(tx: &dyn Raw, user: UserId) -> Result<Vec<u8>> {
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
    tx: &dyn Raw,
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

/// The records of API keys.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<ApiKey>().redacted(Redaction::Whole).logged().deleted_with_account(remove_all),
    &record::<ApiKeyUse>().redacted(Redaction::Whole),
    &record::<Grantors>().redacted(Redaction::Whole),
];

impl Loggable for ApiKey {
    const SCOPE: &'static str = "PersonalAPIKey";
    const ACTIONS: &'static [FieldAction] =
        &[FieldAction::Changed { field: "last_rolled_at", action: "rolled" }];
    /// Plain members may not see other users' keys.
    const ADMINS_ONLY: bool = true;
    /// Other members read the organization's log and must not learn which other organizations a key can access.
    const HIDDEN: &'static [&'static str] = &["scoped_teams", "scoped_organizations"];

    /// An entry belongs to an organization only if the key is limited to that one organization, the user is a member of
    /// it and it still exists. Otherwise the entry belongs to the user: a former member must not write to the log of
    /// the organization, and nothing would ever delete entries of a deleted organization.
    fn entity(meta: &Self::Meta, tx: &impl Tx) -> Result<LogEntity> {
        let organization = match meta.organizations.as_slice() {
            [one] if members::find(tx, *one, meta.user)?.is_some() => Some(*one),
            _ => None,
        };
        let exists = organization.map_or(Ok(false), |one| tx.exists::<Organization>(&one))?;
        Ok(LogEntity::new(meta.id, organization.filter(|_| exists), None))
    }

    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        public_text(row, "label")
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let mut fields = public_fields(row)?;
        fields.retain(|name, _| name == "label" || name == "last_rolled_at");
        let Meta { scopes, organizations, projects, expires_at, .. } = &row.meta;
        fields.extend([
            ("scopes".to_owned(), json!(scopes)),
            ("scoped_teams".to_owned(), json!(projects)),
            ("scoped_organizations".to_owned(), json!(organizations)),
            ("expires_at".to_owned(), json!(expires_at)),
        ]);
        Ok(fields)
    }
}
