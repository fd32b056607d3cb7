//! What is sent to make, change or roll a key (facts-crosscutting §a; decisions §2, Issuing).

use std::collections::BTreeSet;

use serde_json::Value;
use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::input;
use crate::input::{
    Identifier, Integer, Kind, ListOf, Name, Nullable, Required, Schema, Text, UuidField,
};
use crate::time::Timestamp;

use super::{Scopes, scopes};

/// How many organizations or projects a key names at the most: every request reads them.
const MOST_PLACES: usize = 100;
/// How many scopes it may be sent.
const MOST_SCOPES: usize = 200;

/// At least one scope.
pub struct ScopeList;

impl Kind for ScopeList {
    type Value = Scopes;

    fn read(value: &Value) -> Result<Scopes> {
        Scopes::new(ListOf::<Text<100>, MOST_SCOPES>::read(value)?)
    }

    fn schema() -> Schema {
        let scope = ObjectBuilder::new().schema_type(Type::String).max_length(Some(100));
        let scope = scope.pattern(Some(scopes::pattern()));
        ArrayBuilder::new().items(scope).min_items(Some(1)).max_items(Some(MOST_SCOPES)).into()
    }
}

/// Projects, each once.
pub struct Teams;

impl Kind for Teams {
    type Value = Vec<ProjectId>;

    fn read(value: &Value) -> Result<Self::Value> {
        let ids: BTreeSet<u64> =
            ListOf::<Identifier, MOST_PLACES>::read(value)?.into_iter().collect();
        Ok(ids.into_iter().map(ProjectId).collect())
    }

    fn schema() -> Schema {
        ListOf::<Identifier, MOST_PLACES>::schema()
    }
}

/// Organizations, each once; one that is no UUID is refused in the words of facts-crosscutting §a.
pub struct Organizations;

impl Kind for Organizations {
    type Value = Vec<OrganizationId>;

    fn read(value: &Value) -> Result<Self::Value> {
        let mut ids = BTreeSet::new();
        for text in ListOf::<Text<100>, MOST_PLACES>::read(value)? {
            let id = Uuid::try_parse(&text)
                .map_err(|_| Error::invalid("invalid_input", "Invalid organization UUID"))?;
            ids.insert(OrganizationId(id));
        }
        Ok(ids.into_iter().collect())
    }

    fn schema() -> Schema {
        ListOf::<UuidField, MOST_PLACES>::schema()
    }
}

/// A moment, in the forms of facts-crosscutting §b.
pub struct Moment;

impl Kind for Moment {
    type Value = Timestamp;

    /// Holds the moment at the last one that can be shown.
    fn read(value: &Value) -> Result<Timestamp> {
        let moment = value.as_str().and_then(Timestamp::parse);
        moment.map(|moment| moment.plus_seconds(0)).ok_or_else(|| {
            Error::invalid(
                "invalid_input",
                "Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].",
            )
        })
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

input! {
    /// A key to make. What is left out of organizations, projects and expiry is taken from the key that makes it.
    pub struct PersonalApiKeyFields {
        /// What to call it.
        label: Required<Name<40>>,
        /// What it may do: `*`, or `object:read` and `object:write`. No more than the maker may.
        scopes: Required<ScopeList>,
        /// The projects it is limited to; empty or null for no limit, which only a maker without one may ask for.
        scoped_teams: Nullable<Teams>,
        /// The organizations it is limited to; empty or null as above.
        scoped_organizations: Nullable<Organizations>,
        /// When it ends by itself; null for never, which only a maker that never ends may ask for.
        expires_at: Nullable<Moment>,
    }
}

input! {
    /// What may be changed of a key, within what the key holds that changes it.
    pub struct PersonalApiKeyPatch {
        /// What to call it.
        label: Name<40>,
        /// What it may do.
        scopes: ScopeList,
        /// The projects it is limited to; empty or null for no limit.
        scoped_teams: Nullable<Teams>,
        /// The organizations it is limited to; empty or null for no limit.
        scoped_organizations: Nullable<Organizations>,
        /// When it ends by itself; null for never.
        expires_at: Nullable<Moment>,
    }
}

input! {
    /// How to roll a key.
    pub struct RollFields {
        /// For how long the old value works on.
        grace_seconds: Integer<0, 86_400>,
    }
}
