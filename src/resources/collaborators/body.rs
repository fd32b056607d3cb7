//! How a collaborator is shown, for the schema.

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
    /// Its own id, which is not the user's.
    pub id: CollaboratorId,
    /// The dashboard.
    pub dashboard_id: DashboardId,
    /// Who it is.
    pub user: users::Shown,
    /// What they may do: 37, edit.
    #[schema(value_type = Privileges)]
    pub level: i64,
    /// When they were added.
    pub added_at: Timestamp,
    /// When that last changed.
    pub updated_at: Timestamp,
    /// The user's name in paths.
    pub user_uuid: UserUuid,
}
