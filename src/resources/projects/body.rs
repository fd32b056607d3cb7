//! The JSON of a project.

use crate::json::{JsonText, output};
use crate::resources::members::Level;

use super::{Fields, settings};

output! {
    /// A project in a list.
    pub struct ProjectSummary<'a> {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// Always false: this service does not ingest events.
        ingested_event: bool = false,
    }
}

output! {
    /// A project with all its settings.
    pub struct ProjectBody<'a> as Project {
        /// The fields that list items show.
        ..own: JsonText<'a, Fields> as Fields,
        /// The settings.
        ..settings: JsonText<'a, settings::Fields> as settings::Fields,
        /// The caller's level in the project: 1 for member, 8 for admin, 15 for owner; null for no access.
        effective_membership_level: Option<i64> as Option<Level>,
        /// Always false: groups are not supported.
        has_group_types: bool = false,
        /// A signed token for the stream of live events, valid for 7 days. Null in the replay of an idempotent
        /// request.
        live_events_token: &'a str as Option<String>,
        /// Always `false`, as JSON text.
        person_on_events_querying_enabled: String = "false",
        /// Always an empty object, as JSON text.
        default_modifiers: String = "{}",
        /// Always an empty array, as JSON text.
        product_intents: String = "[]",
    }
}
