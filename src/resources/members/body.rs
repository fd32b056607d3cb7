//! How a member is shown, for the schema.

use utoipa::ToSchema;

use crate::ids::MembershipId;
use crate::resources::users;
use crate::time::Timestamp;

use super::Level;

/// A member of an organization.
#[derive(ToSchema)]
#[schema(as = Member)]
pub struct MemberBody {
    /// The membership's own id, which is not the user's.
    pub id: MembershipId,
    /// Who it is.
    pub user: users::Shown,
    /// What they may do: 1 member, 8 admin, 15 owner.
    pub level: Level,
    /// When they joined.
    pub joined_at: Timestamp,
    /// When the membership last changed.
    pub updated_at: Timestamp,
    /// False: there are keys, and no second factor.
    pub is_2fa_enabled: bool,
    /// False.
    pub has_social_auth: bool,
    /// Null: nobody logs in.
    pub last_login: Option<Timestamp>,
}
