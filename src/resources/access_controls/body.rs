//! Response schemas of access rules.

use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::MembershipId;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::projects::grants::GrantLevel;
use crate::resources::users;
use crate::time::Timestamp;

/// The access rules on a project, and the caller's own access.
#[derive(ToSchema)]
pub struct ProjectAccessControls {
    /// One rule for each member who has one.
    pub access_controls: Vec<ProjectAccessControl>,
    /// The levels of a rule, lowest first.
    pub available_access_levels: Vec<GrantLevel>,
    /// The level of members without a rule.
    pub default_access_level: GrantLevel,
    /// The caller's level.
    pub user_access_level: GrantLevel,
    /// Whether the caller may edit the rules.
    pub user_can_edit_access_levels: bool,
}

/// An access rule on a project.
#[derive(ToSchema)]
pub struct ProjectAccessControl {
    /// The member's level in the project.
    pub access_level: GrantLevel,
    /// The fields that all rules have.
    #[serde(flatten)]
    pub rule: Rule,
}

/// The access rules on a dashboard, or on all dashboards of a project, and the caller's own access.
#[derive(ToSchema)]
pub struct DashboardAccessControls {
    /// The rules on members, followed by the rule for everyone.
    pub access_controls: Vec<DashboardAccessControl>,
    /// The levels of a rule, lowest first.
    pub available_access_levels: Vec<AccessLevel>,
    /// The level of everyone to whom no rule applies.
    pub default_access_level: AccessLevel,
    /// The caller's level.
    pub user_access_level: AccessLevel,
    /// Whether the caller may edit the rules.
    pub user_can_edit_access_levels: bool,
}

/// An access rule on a dashboard, or on all dashboards of a project.
#[derive(ToSchema)]
pub struct DashboardAccessControl {
    /// The level on the dashboard or dashboards.
    pub access_level: AccessLevel,
    /// The fields that all rules have.
    #[serde(flatten)]
    pub rule: Rule,
}

/// The fields that all access rules have.
#[derive(ToSchema)]
pub struct Rule {
    /// `project` or `dashboard`.
    pub resource: String,
    /// ID of the project or dashboard. Null for a rule on all dashboards of the project.
    pub resource_id: Option<String>,
    /// ID of the membership, not of the user. Null for everyone by default.
    pub organization_member: Option<MembershipId>,
    /// Always null: roles are not supported.
    pub role: Option<Uuid>,
    /// Always null: the creator of a rule is only in the activity log.
    pub created_by: Option<users::Fields>,
    /// When the rule was created.
    pub created_at: Timestamp,
    /// When the level last changed.
    pub updated_at: Timestamp,
}
