//! How a project is shown, for the schema.

use utoipa::ToSchema;

use crate::resources::members::Level;

use super::{Shown, settings};

/// A project, as lists show it.
#[derive(ToSchema)]
pub struct ProjectSummary {
    /// Its own fields.
    #[serde(flatten)]
    pub own: Shown,
    /// False: events are not taken in here.
    pub ingested_event: bool,
}

/// A project with all its settings.
#[derive(ToSchema)]
#[schema(as = Project)]
pub struct ProjectBody {
    /// What lists show too.
    #[serde(flatten)]
    pub own: Shown,
    /// The rest.
    #[serde(flatten)]
    pub settings: settings::Shown,
    /// What the caller may do in it: 1 member, 8 admin, 15 owner; null for nothing.
    pub effective_membership_level: Option<Level>,
    /// False: there are no groups.
    pub has_group_types: bool,
    /// A signed token for the stream of live events; null where a request was sent again and is answered as before.
    pub live_events_token: Option<String>,
    /// `false`.
    pub person_on_events_querying_enabled: String,
    /// An empty object, as JSON text.
    pub default_modifiers: String,
    /// An empty array, as JSON text.
    pub product_intents: String,
}
