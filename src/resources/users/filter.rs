//! The user that a query parameter names.

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::error::Result;
use crate::ids::{UserId, UserUuid};
use crate::input::{FieldType, Schema, UuidField};
use crate::store::Tx;

use super::BY_UUID;

/// The user that the `user` parameter of a list names: a UUID or `@me`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserFilter {
    /// The caller, `@me`.
    Caller,
    /// The user with this UUID.
    Uuid(UserUuid),
}

impl FieldType for UserFilter {
    type Value = Self;

    fn read(value: &Value) -> Result<Self> {
        if value == "@me" {
            return Ok(Self::Caller);
        }
        UuidField::read(value).map(|uuid| Self::Uuid(UserUuid(uuid)))
    }

    fn schema() -> Schema {
        let me = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["@me"]));
        AnyOfBuilder::new().item(UuidField::schema()).item(me).into()
    }
}

impl UserFilter {
    /// Returns the user; `None` if no user has this UUID.
    pub fn resolve(self, tx: &impl Tx, caller: UserId) -> Result<Option<UserId>> {
        match self {
            Self::Caller => Ok(Some(caller)),
            Self::Uuid(uuid) => tx.lookup(&BY_UUID, &uuid),
        }
    }
}

impl PartialSchema for UserFilter {
    fn schema() -> RefOr<Schema> {
        <Self as FieldType>::schema().into()
    }
}

impl ToSchema for UserFilter {}
