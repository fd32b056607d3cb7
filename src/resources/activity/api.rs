//! What the API shows of activity entries, and what the activity log declares about its records.

use std::marker::PhantomData;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::ids::{ActivityId, ProjectId};
use crate::input::Schema;
use crate::json::{JsonText, output};
use crate::resources::shared::loggable::FieldAction;
use crate::resources::shared::registration::{RegisteredRecord, record};
use crate::resources::users::{self, EmbeddedUser};
use crate::time::Timestamp;

use super::scopes::SCOPES;
use super::{Entry, Fields};

/// The types of object that entries refer to.
pub struct ScopeNames;

/// Types of object that PostHog logs and Steward does not. A filter by them matches no entry.
const NOT_LOGGED: [&str; 30] = [
    "Action",
    "AlertConfiguration",
    "AlertSubscription",
    "Annotation",
    "BatchImport",
    "Cohort",
    "Comment",
    "DataManagement",
    "EarlyAccessFeature",
    "Endpoint",
    "ErrorTrackingIssue",
    "EventDefinition",
    "Experiment",
    "ExternalDataSchema",
    "ExternalDataSource",
    "FeatureFlag",
    "Group",
    "HogFlow",
    "HogFunction",
    "Integration",
    "Notebook",
    "Person",
    "Plugin",
    "PluginConfig",
    "PropertyDefinition",
    "Replay",
    "SessionRecordingPlaylist",
    "Subscription",
    "Survey",
    "Threshold",
];

impl ScopeNames {
    pub(super) fn contains(name: &str) -> bool {
        Self::all().chain(NOT_LOGGED).any(|known| known == name)
    }

    fn all() -> impl Iterator<Item = &'static str> {
        SCOPES.iter().map(|scope| scope.name)
    }
}

impl PartialSchema for ScopeNames {
    fn schema() -> RefOr<Schema> {
        one_of(Self::all())
    }
}

impl ToSchema for ScopeNames {}

/// The actions that entries record.
pub struct ActivityNames;

impl ActivityNames {
    pub(super) fn contains(name: &str) -> bool {
        Self::all().contains(&name)
    }

    fn all() -> Vec<&'static str> {
        let mut names = vec!["created", "updated"];
        for name in SCOPES.iter().flat_map(|scope| &scope.actions).flat_map(FieldAction::names) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl PartialSchema for ActivityNames {
    fn schema() -> RefOr<Schema> {
        one_of(Self::all())
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

/// The records of the activity log.
pub const RECORDS: &[&dyn RegisteredRecord] =
    &[&record::<Entry>().deleted_with_organization().names_users(Entry::visit_users)];
