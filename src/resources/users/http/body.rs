//! The JSON of the caller's own account.

use serde_json::{Map, Value};

use crate::ids::{UserId, UserUuid};
use crate::input::choices_schema;
use crate::json::{WrittenBy, output};
use crate::resources::organizations::http::body::{BasicOrganization, OrganizationBody};
use crate::resources::projects::api::ProjectSummary;
use crate::time::Timestamp;

use super::super::api::{ThemeMode, ToolbarMode};

choices_schema!(ToolbarMode, ThemeMode);

output! {
    /// The caller's account, with the organization and the project that `@current` refers to.
    pub struct CurrentUser<'a> {
        /// When the user was created.
        date_joined: Timestamp,
        /// The id of the user in paths.
        uuid: UserUuid,
        /// A random token that never changes.
        distinct_id: String,
        /// The given name.
        first_name: String,
        /// The family name.
        last_name: String,
        /// The address, with its domain in lower case. Read-only.
        #[schema(format = IdnEmail)]
        email: String,
        /// Always null: addresses do not change.
        pending_email: Option<String> = null,
        /// Whether the user proved the address.
        is_email_verified: bool,
        /// The notifications that the user wants.
        notification_settings: Map<String, Value>,
        /// Whether data about the user's own usage is anonymized.
        anonymize_data: bool,
        /// Whether the toolbar is shown.
        toolbar_mode: String as ToolbarMode,
        /// Always false: users authenticate with API keys.
        has_password: bool = false,
        /// The numeric id of the user.
        id: UserId,
        /// Always false.
        is_staff: bool = false,
        /// Always false.
        is_impersonated: bool = false,
        /// Always null.
        is_impersonated_until: Option<Timestamp> = null,
        /// Always null.
        sensitive_session_expires_at: Option<Timestamp> = null,
        /// The columns of the events table.
        events_column_config: Value,
        /// Always false.
        is_2fa_enabled: bool = false,
        /// Always false.
        has_social_auth: bool = false,
        /// Always false.
        has_sso_enforcement: bool = false,
        /// The product introductions that the user has seen.
        has_seen_product_intro_for: Option<Map<String, Value>>,
        /// Always empty.
        scene_personalisation: Vec<Value> = [],
        /// The theme: light, dark or the system's.
        theme_mode: Option<String> as Option<ThemeMode>,
        /// The user's hedgehog avatar.
        hedgehog_config: Option<Map<String, Value>>,
        /// The role of the user in the organization, such as `engineering`.
        role_at_organization: Option<String>,
        /// The project that `@current` refers to.
        team: WrittenBy<'a> as Option<ProjectSummary>,
        /// The organization that `@current` refers to.
        organization: WrittenBy<'a> as Option<OrganizationBody>,
        /// The organizations of the user that the API key can access, at most the 100 oldest.
        organizations: WrittenBy<'a> as Vec<BasicOrganization>,
    }
}
