//! How an entry of the log is shown, for the schema.

use std::marker::PhantomData;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::ids::ActivityId;
use crate::input::{Choice, Choices, Kind, Schema, UuidField, choices_schema};
use crate::resources::access_controls::rules::Rule;
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

use super::Shown;
use super::subject::Loggable;

/// The kinds of things that entries are about.
pub struct Scopes;

impl Choices for Scopes {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &[
        Organization::SCOPE,
        Membership::SCOPE,
        Invite::SCOPE,
        Domain::SCOPE,
        Project::SCOPE,
        Dashboard::SCOPE,
        Collaborator::SCOPE,
        Rule::SCOPE,
        BatchExport::SCOPE,
        User::SCOPE,
        ApiKey::SCOPE,
    ];
}

/// What entries tell of in a word.
pub struct Activities;

impl Choices for Activities {
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

choices_schema!(Scopes, Activities);

/// Several of a list to choose from, as the query of a log names them.
pub struct Several<C>(PhantomData<C>);

impl<C: Choices> PartialSchema for Several<C> {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(RefOr::T(Choice::<C>::schema())).into()
    }
}

impl<C: Choices> ToSchema for Several<C> {}

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
