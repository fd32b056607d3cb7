//! The request bodies that create, update and roll a key.

use std::collections::BTreeSet;

use serde_json::Value;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::input;
use crate::input::{
    DateTime, FieldType, Identifier, Integer, ListOf, Name, Nullable, Required, Schema, Text,
    UuidField,
};
use crate::time::Timestamp;

use super::{Scopes, scopes};

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
