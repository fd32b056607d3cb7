//! How an entry of the log is shown, for the schema.

use utoipa::ToSchema;

use crate::ids::ActivityId;
use crate::resources::users;
use crate::time::Timestamp;

use super::Shown;

/// What was done at one time with one thing.
#[derive(ToSchema)]
#[schema(as = ActivityLog)]
pub struct EntryBody {
    /// Its id.
    pub id: ActivityId,
    /// Who did it; null for the operator.
    pub user: Option<users::Shown>,
    /// What was done, and with what.
    #[serde(flatten)]
    pub told: Shown,
    /// When.
    pub created_at: Timestamp,
}
