//! What the API shows of activity entries, and what the activity log declares about its records.

use std::marker::PhantomData;
use std::sync::LazyLock;

use utoipa::PartialSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};

use crate::resources::shared::list::logged_records;
use crate::resources::shared::loggable::FieldAction;
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, EmbeddedUser};

use super::{Entry, Fields};

/// The types of object that entries refer to.
pub struct ScopeNames;

/// Types of object that PostHog logs and Steward does not. A filter by them matches no entry.
const NOT_LOGGED: &str = "\
    Action AlertConfiguration AlertSubscription Annotation BatchImport Cohort Comment \
    DataManagement EarlyAccessFeature Endpoint ErrorTrackingIssue EventDefinition Experiment \
    ExternalDataSchema ExternalDataSource FeatureFlag Group HogFlow HogFunction Integration \
    Notebook Person Plugin PluginConfig PropertyDefinition Replay SessionRecordingPlaylist \
    Subscription Survey Threshold";

impl ScopeNames {
    pub(super) fn contains(name: &str) -> bool {
        Self::all().chain(NOT_LOGGED.split(' ')).any(|known| known == name)
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

/// What all types of records with one scope declare together.
pub(super) struct Scope {
    /// The type of the object, as the API names it.
    pub(super) name: &'static str,
    /// The actions that all scopes have, and those of this scope.
    pub(super) actions: Vec<FieldAction>,
    /// Whether only admins may read the entries.
    pub(super) admins_only: bool,
    object_of: Vec<fn(&str) -> Option<Object>>,
}

/// The actions of objects that stay restorable when they are deleted.
const DELETED: FieldAction =
    FieldAction::Switched { field: "deleted", on: "deleted", off: "restored" };

/// All scopes, in the order of their resources.
static SCOPES: LazyLock<Vec<Scope>> = LazyLock::new(|| {
    let mut scopes: Vec<Scope> = Vec::new();
    for rules in logged_records().filter_map(|record| record.log_rules()) {
        let at = scopes.iter().position(|scope| scope.name == rules.scope);
        let at = at.unwrap_or_else(|| {
            let (actions, object_of) = (vec![DELETED], Vec::new());
            scopes.push(Scope { name: rules.scope, actions, admins_only: false, object_of });
            scopes.len() - 1
        });
        if let Some(scope) = scopes.get_mut(at) {
            scope.actions.extend(rules.actions);
            scope.admins_only |= rules.admins_only;
            scope.object_of.push(rules.object_of);
        }
    }
    scopes
});

impl Scope {
    /// Returns the scope with this name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        SCOPES.iter().find(|scope| scope.name == name)
    }

    /// Returns the object that the `item_id` of an entry names.
    pub(super) fn object_of(&self, item_id: &str) -> Option<Object> {
        self.object_of.iter().find_map(|object_of| object_of(item_id))
    }
}
