//! Response schema of collaborators.

use utoipa::ToSchema;

use crate::ids::{CollaboratorId, DashboardId, UserUuid};
use crate::input::choices_schema;
use crate::resources::users;
use crate::time::Timestamp;

use super::Privileges;

choices_schema!(Privileges);

/// A user who may edit a restricted dashboard.
#[derive(ToSchema)]
#[schema(as = DashboardCollaborator)]
pub struct CollaboratorBody {
    /// UUID of the collaborator, not of the user.
    pub id: CollaboratorId,
    /// The dashboard.
    pub dashboard_id: DashboardId,
    /// The user.
    pub user: users::Fields,
    /// What the user may do. Always 37, for edit.
    #[schema(value_type = Privileges)]
    pub level: i64,
    /// When the user became a collaborator.
    pub added_at: Timestamp,
    /// When the collaborator last changed.
    pub updated_at: Timestamp,
    /// UUID of the user, for the path of the DELETE request.
    pub user_uuid: UserUuid,
}
