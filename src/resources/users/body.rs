//! How the caller is shown to themselves, for the schema.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::ids::{UserId, UserUuid};
use crate::input::choices_schema;
use crate::resources::organizations::body::{BasicOrganization, OrganizationBody};
use crate::resources::projects::body::ProjectSummary;
use crate::time::Timestamp;

use super::input::{ThemeMode, ToolbarMode};

choices_schema!(ToolbarMode, ThemeMode);

/// The caller, with the organization and the project that `@current` stands for.
#[derive(ToSchema)]
#[schema(as = CurrentUser)]
#[expect(clippy::struct_excessive_bools, reason = "the members of an answer")]
pub struct CurrentUser {
    /// When the user was made.
    pub date_joined: Timestamp,
    /// The user's name in paths.
    pub uuid: UserUuid,
    /// A random token, fixed at creation.
    pub distinct_id: String,
    /// Given name.
    pub first_name: String,
    /// Family name.
    pub last_name: String,
    /// The address, its domain in lower case. Read-only.
    #[schema(format = IdnEmail)]
    pub email: String,
    /// Null: an address is never changed.
    pub pending_email: Option<String>,
    /// Whether the address was proved.
    pub is_email_verified: bool,
    /// Which notifications the user wants.
    pub notification_settings: Map<String, Value>,
    /// Whether the user's own use is anonymized.
    pub anonymize_data: bool,
    /// Whether the toolbar is shown.
    #[schema(value_type = ToolbarMode)]
    pub toolbar_mode: String,
    /// False: there are keys, and no passwords.
    pub has_password: bool,
    /// The user's number.
    pub id: UserId,
    /// False.
    pub is_staff: bool,
    /// False.
    pub is_impersonated: bool,
    /// Null.
    pub is_impersonated_until: Option<Timestamp>,
    /// Null.
    pub sensitive_session_expires_at: Option<Timestamp>,
    /// Columns of the events table.
    pub events_column_config: Value,
    /// False.
    pub is_2fa_enabled: bool,
    /// False.
    pub has_social_auth: bool,
    /// False.
    pub has_sso_enforcement: bool,
    /// Which introductions the user has seen.
    pub has_seen_product_intro_for: Option<Map<String, Value>>,
    /// Empty.
    pub scene_personalisation: Vec<Value>,
    /// Light, dark, or as the system has it.
    #[schema(value_type = Option<ThemeMode>)]
    pub theme_mode: Option<String>,
    /// The user's hedgehog.
    pub hedgehog_config: Option<Map<String, Value>>,
    /// What the user is in the organization, such as `engineering`.
    pub role_at_organization: Option<String>,
    /// The project that `@current` stands for.
    pub team: Option<ProjectSummary>,
    /// The organization that `@current` stands for.
    pub organization: Option<OrganizationBody>,
    /// The organizations that the user belongs to and the key shows, at most the 100 oldest.
    pub organizations: Vec<BasicOrganization>,
}
