//! The OpenAPI schema of an activity entry.

use std::marker::PhantomData;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::ids::{ActivityId, ProjectId};
use crate::input::Schema;
use crate::json::{JsonText, output};
use crate::resources::loggable::FieldAction;
use crate::resources::users::{self, EmbeddedUser};
use crate::time::Timestamp;

use super::Fields;
use super::scopes::SCOPES;

/// The types of object that entries refer to.
pub struct ScopeNames;

impl PartialSchema for ScopeNames {
    fn schema() -> RefOr<Schema> {
        one_of(SCOPES.iter().map(|scope| scope.name))
    }
}

impl ToSchema for ScopeNames {}

/// The actions that entries record.
pub struct ActivityNames;

impl PartialSchema for ActivityNames {
    fn schema() -> RefOr<Schema> {
        let mut names = vec!["created", "updated"];
        for name in SCOPES.iter().flat_map(|scope| &scope.actions).flat_map(FieldAction::names) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        one_of(names)
    }
}

impl ToSchema for ActivityNames {}

fn one_of(names: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
}

/// A query parameter that takes several of the names.
pub struct CommaList<C>(PhantomData<C>);

impl<C: PartialSchema> PartialSchema for CommaList<C> {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(C::schema()).into()
    }
}

impl<C: PartialSchema> ToSchema for CommaList<C> {}

output! {
    /// One change to one object.
    pub struct EntryBody<'a> as ActivityLog {
        /// The id of the entry.
        id: ActivityId,
        /// The user that made the change, or null for the operator.
        user: EmbeddedUser as Option<users::Fields>,
        /// The object and its changed fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// The project of the object, which may be deleted. Null for an object of the organization.
        project_id: Option<ProjectId>,
        /// When the change was made.
        created_at: Timestamp,
    }
}
