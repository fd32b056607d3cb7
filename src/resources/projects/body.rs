//! Response schemas of projects.

use utoipa::ToSchema;

use crate::resources::members::Level;

use super::{Fields, settings};

/// A project in a list.
#[derive(ToSchema)]
pub struct ProjectSummary {
    /// The stored fields.
    #[serde(flatten)]
    pub own: Fields,
    /// Always false: this service does not ingest events.
    pub ingested_event: bool,
}

/// A project with all its settings.
#[derive(ToSchema)]
#[schema(as = Project)]
pub struct ProjectBody {
    /// The fields that list items show.
    #[serde(flatten)]
    pub own: Fields,
    /// The settings.
    #[serde(flatten)]
    pub settings: settings::Fields,
    /// The caller's level in the project: 1 for member, 8 for admin, 15 for owner; null for no access.
    pub effective_membership_level: Option<Level>,
    /// Always false: groups are not supported.
    pub has_group_types: bool,
    /// A signed token for the stream of live events, valid for 7 days. Null in the replay of an idempotent
    /// request.
    pub live_events_token: Option<String>,
    /// Always `false`, as JSON text.
    pub person_on_events_querying_enabled: String,
    /// Always an empty object, as JSON text.
    pub default_modifiers: String,
    /// Always an empty array, as JSON text.
    pub product_intents: String,
}
