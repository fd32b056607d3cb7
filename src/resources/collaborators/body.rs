//! The JSON of a collaborator.

use crate::ids::{CollaboratorId, DashboardId, UserUuid};
use crate::input::choices_schema;
use crate::json::{JsonText, output};
use crate::resources::users;
use crate::time::Timestamp;

use super::Privileges;

choices_schema!(Privileges);

output! {
    /// A user who may edit a restricted dashboard.
    pub struct CollaboratorBody<'a> as DashboardCollaborator {
        /// UUID of the collaborator, not of the user.
        id: CollaboratorId,
        /// The dashboard.
        dashboard_id: DashboardId,
        /// The user.
        user: JsonText<'a, users::Fields> as users::Fields,
        /// What the user may do. Always 37, for edit.
        level: i64 as Privileges,
        /// When the user became a collaborator.
        added_at: Timestamp,
        /// When the collaborator last changed.
        updated_at: Timestamp,
        /// UUID of the user, for the path of the DELETE request.
        user_uuid: UserUuid,
    }
}
