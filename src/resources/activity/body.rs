//! How an entry of the log is shown, for the schema.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::ids::ActivityId;
use crate::input::{Kind, Schema, UuidField};
use crate::resources::users;
use crate::time::Timestamp;

use super::Shown;

/// A user as the query of a log names them.
pub struct Maker;

impl PartialSchema for Maker {
    fn schema() -> RefOr<Schema> {
        let me = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["@me"]));
        AnyOfBuilder::new().item(UuidField::schema()).item(me).into()
    }
}

impl ToSchema for Maker {}

/// What was done at one time with one thing.
#[derive(ToSchema)]
#[schema(as = ActivityLog)]
pub struct EntryBody {
    /// Its id.
    pub id: ActivityId,
    /// Who did it; null for the operator.
    pub user: Option<users::Shown>,
    /// What was done, and with what.
    #[serde(flatten)]
    pub told: Shown,
    /// When.
    pub created_at: Timestamp,
}
