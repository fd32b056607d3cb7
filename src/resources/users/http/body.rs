//! The OpenAPI schema of the caller's own account.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::ids::{UserId, UserUuid};
use crate::input::choices_schema;
use crate::resources::organizations::http::body::{BasicOrganization, OrganizationBody};
use crate::resources::projects::body::ProjectSummary;
use crate::time::Timestamp;

use super::super::input::{ThemeMode, ToolbarMode};

choices_schema!(ToolbarMode, ThemeMode);

/// The caller's account, with the organization and the project that `@current` refers to.
#[derive(ToSchema)]
#[schema(as = CurrentUser)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of a response")]
pub struct CurrentUser {
    /// When the user was created.
    pub date_joined: Timestamp,
    /// The id of the user in paths.
    pub uuid: UserUuid,
    /// A random token that never changes.
    pub distinct_id: String,
    /// The given name.
    pub first_name: String,
    /// The family name.
    pub last_name: String,
    /// The address, with its domain in lower case. Read-only.
    #[schema(format = IdnEmail)]
    pub email: String,
    /// Always null: addresses do not change.
    pub pending_email: Option<String>,
    /// Whether the user proved the address.
    pub is_email_verified: bool,
    /// The notifications that the user wants.
    pub notification_settings: Map<String, Value>,
    /// Whether data about the user's own usage is anonymized.
    pub anonymize_data: bool,
    /// Whether the toolbar is shown.
    #[schema(value_type = ToolbarMode)]
    pub toolbar_mode: String,
    /// Always false: users authenticate with API keys.
    pub has_password: bool,
    /// The numeric id of the user.
    pub id: UserId,
    /// Always false.
    pub is_staff: bool,
    /// Always false.
    pub is_impersonated: bool,
    /// Always null.
    pub is_impersonated_until: Option<Timestamp>,
    /// Always null.
    pub sensitive_session_expires_at: Option<Timestamp>,
    /// The columns of the events table.
    pub events_column_config: Value,
    /// Always false.
    pub is_2fa_enabled: bool,
    /// Always false.
    pub has_social_auth: bool,
    /// Always false.
    pub has_sso_enforcement: bool,
    /// The product introductions that the user has seen.
    pub has_seen_product_intro_for: Option<Map<String, Value>>,
    /// Always empty.
    pub scene_personalisation: Vec<Value>,
    /// The theme: light, dark or the system's.
    #[schema(value_type = Option<ThemeMode>)]
    pub theme_mode: Option<String>,
    /// The user's hedgehog avatar.
    pub hedgehog_config: Option<Map<String, Value>>,
    /// The role of the user in the organization, such as `engineering`.
    pub role_at_organization: Option<String>,
    /// The project that `@current` refers to.
    pub team: Option<ProjectSummary>,
    /// The organization that `@current` refers to.
    pub organization: Option<OrganizationBody>,
    /// The organizations of the user that the API key can access, at most the 100 oldest.
    pub organizations: Vec<BasicOrganization>,
}
