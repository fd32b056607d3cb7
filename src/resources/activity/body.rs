//! The OpenAPI schema of an activity entry.

use std::marker::PhantomData;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::ids::ActivityId;
use crate::input::{Choice, Choices, FieldType, Schema, UuidField, choices_schema};
use crate::resources::access_controls::rules::AccessRule;
use crate::resources::api_keys::ApiKey;
use crate::resources::batch_exports::BatchExport;
use crate::resources::collaborators::Collaborator;
use crate::resources::dashboards::Dashboard;
use crate::resources::domains::Domain;
use crate::resources::invites::Invite;
use crate::resources::members::Membership;
use crate::resources::organizations::Organization;
use crate::resources::projects::Project;
use crate::resources::users::{self, User};
use crate::time::Timestamp;

use super::Fields;
use super::log_target::Loggable;

/// The types of object that entries refer to.
pub struct ScopeNames;

impl Choices for ScopeNames {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &[
        Organization::SCOPE,
        Membership::SCOPE,
        Invite::SCOPE,
        Domain::SCOPE,
        Project::SCOPE,
        Dashboard::SCOPE,
        Collaborator::SCOPE,
        AccessRule::SCOPE,
        BatchExport::SCOPE,
        User::SCOPE,
        ApiKey::SCOPE,
    ];
}

/// The actions that entries record.
pub struct ActivityNames;

impl Choices for ActivityNames {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &[
        "created",
        "updated",
        "deleted",
        "restored",
        "sharing enabled",
        "sharing disabled",
        "access token refreshed",
        "paused",
        "unpaused",
        "rolled",
    ];
}

choices_schema!(ScopeNames, ActivityNames);

/// A query parameter that takes several of the choices.
pub struct CommaList<C>(PhantomData<C>);

impl<C: Choices> PartialSchema for CommaList<C> {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(RefOr::T(Choice::<C>::schema())).into()
    }
}

impl<C: Choices> ToSchema for CommaList<C> {}

/// The `user` parameter: a UUID or `@me`.
pub struct ActorParameter;

impl PartialSchema for ActorParameter {
    fn schema() -> RefOr<Schema> {
        let me = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["@me"]));
        AnyOfBuilder::new().item(UuidField::schema()).item(me).into()
    }
}

impl ToSchema for ActorParameter {}

/// One change to one object.
#[derive(ToSchema)]
#[schema(as = ActivityLog)]
pub struct EntryBody {
    /// The id of the entry.
    pub id: ActivityId,
    /// The user that made the change, or null for the operator.
    pub user: Option<users::Fields>,
    /// The object and its changed fields.
    #[serde(flatten)]
    pub told: Fields,
    /// When the change was made.
    pub created_at: Timestamp,
}
