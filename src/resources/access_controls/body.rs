//! How access rules are shown, for the schema.

use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::levels::AccessLevel;
use crate::ids::MembershipId;
use crate::resources::projects::grants::GrantLevel;
use crate::resources::users;
use crate::time::Timestamp;

/// The rules on a project, and what the caller may do in it and with them.
#[derive(ToSchema)]
pub struct ProjectAccessControls {
    /// The rules, each about a member.
    pub access_controls: Vec<ProjectAccessControl>,
    /// The levels that a rule takes, least first.
    pub available_access_levels: Vec<GrantLevel>,
    /// What every member has whom no rule names.
    pub default_access_level: GrantLevel,
    /// What the caller has.
    pub user_access_level: GrantLevel,
    /// Whether the caller makes rules.
    pub user_can_edit_access_levels: bool,
}

/// A rule on a project.
#[derive(ToSchema)]
pub struct ProjectAccessControl {
    /// What the member may do in the project.
    pub access_level: GrantLevel,
    /// The rest.
    #[serde(flatten)]
    pub rule: Rule,
}

/// The rules on a dashboard, or on all of a project, and what the caller may do with them.
#[derive(ToSchema)]
pub struct DashboardAccessControls {
    /// The rules: those about members, then the one for everyone.
    pub access_controls: Vec<DashboardAccessControl>,
    /// The levels that a rule takes, least first.
    pub available_access_levels: Vec<AccessLevel>,
    /// What everyone has whom no rule names.
    pub default_access_level: AccessLevel,
    /// What the caller has.
    pub user_access_level: AccessLevel,
    /// Whether the caller makes rules.
    pub user_can_edit_access_levels: bool,
}

/// A rule on a dashboard, or on all dashboards of a project.
#[derive(ToSchema)]
pub struct DashboardAccessControl {
    /// What may be done with it.
    pub access_level: AccessLevel,
    /// The rest.
    #[serde(flatten)]
    pub rule: Rule,
}

/// What every rule shows besides its level.
#[derive(ToSchema)]
pub struct Rule {
    /// `project` or `dashboard`.
    pub resource: String,
    /// What it is on: a number; null for all dashboards of the project.
    pub resource_id: Option<String>,
    /// The membership it is about, which is not the user's id; null for everyone by default.
    pub organization_member: Option<MembershipId>,
    /// Null: roles do not exist.
    pub role: Option<Uuid>,
    /// Null: who made a rule is not kept.
    pub created_by: Option<users::Shown>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
