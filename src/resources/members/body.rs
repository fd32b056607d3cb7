//! The JSON of a member.

use crate::error::Result;
use crate::ids::MembershipId;
use crate::json::output;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};
use crate::store::Tx;
use crate::time::Timestamp;

use super::{JoinedBy, Level, Membership, MembershipOrigin};

output! {
    /// A member of an organization.
    pub struct MemberBody as Member {
        /// The id of the membership, different from the user's id.
        id: MembershipId,
        /// The user.
        user: EmbeddedUser as users::Fields,
        /// The level of the member: 1 member, 8 admin, 15 owner.
        level: Level,
        /// When the user joined.
        joined_at: Timestamp,
        /// When the membership was last updated.
        updated_at: Timestamp,
        /// Always false: users authenticate with API keys.
        is_2fa_enabled: bool = false,
        /// Always false.
        has_social_auth: bool = false,
        /// Always null: there is no login.
        last_login: Option<Timestamp> = null,
        /// The user that created the invite; null for a member that joined without an invite.
        invited_by: EmbeddedUser as Option<users::Fields>,
        /// How the user received the invite: by `mail`, which proves the address, or by `link`; null without an invite.
        joined_by: Option<JoinedBy>,
    }
}

/// Reads the JSON of members, with a cache of users.
#[derive(Default)]
pub struct MemberReader {
    users: EmbeddedUsers,
    inviters: EmbeddedUsers,
}

impl MemberReader {
    /// Returns the JSON of a member.
    pub fn body(&mut self, tx: &impl Tx, member: &Membership) -> Result<MemberBody> {
        let origin = tx.meta::<MembershipOrigin>(&(member.organization, member.user))?;
        let inviter = origin.and_then(|origin| origin.invited_by);
        Ok(MemberBody {
            id: member.id,
            user: self.users.find(tx, Some(member.user))?,
            level: member.level,
            joined_at: member.joined_at,
            updated_at: member.updated_at,
            invited_by: self.inviters.find(tx, inviter)?,
            joined_by: origin.map(|origin| origin.joined_by),
        })
    }
}
