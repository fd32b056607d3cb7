//! The JSON of a member.

use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::MembershipId;
use crate::json::Object;
use crate::resources::users::{self, EmbeddedUserWriter};
use crate::store::Tx;
use crate::time::Timestamp;

use super::{JoinedBy, Level, Membership, MembershipOrigin};

/// A member of an organization.
#[derive(ToSchema)]
#[schema(as = Member)]
pub struct MemberBody {
    /// The id of the membership, different from the user's id.
    pub id: MembershipId,
    /// The user.
    pub user: users::Fields,
    /// The level of the member: 1 member, 8 admin, 15 owner.
    pub level: Level,
    /// When the user joined.
    pub joined_at: Timestamp,
    /// When the membership was last updated.
    pub updated_at: Timestamp,
    /// Always false: users authenticate with API keys.
    pub is_2fa_enabled: bool,
    /// Always false.
    pub has_social_auth: bool,
    /// Always null: there is no login.
    pub last_login: Option<Timestamp>,
    /// The user that created the invite; null for a member that joined without an invite or before this was recorded.
    pub invited_by: Option<users::Fields>,
    /// How the user received the invite: by `mail`, which proves the address, or by `link`; null without an invite.
    pub joined_by: Option<JoinedBy>,
}

/// Writes the JSON of members, with a cache of users.
#[derive(Default)]
pub(super) struct MemberWriter {
    users: EmbeddedUserWriter,
    inviters: EmbeddedUserWriter,
}

impl MemberWriter {
    /// Appends the JSON of a member.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub(super) fn write(
        &mut self,
        tx: &impl Tx,
        member: &Membership,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let origin = tx.meta::<MembershipOrigin>(&(member.organization, member.user))?;
        let inviter = origin.and_then(|origin| origin.invited_by);
        Object::begin(out)
            .field("id", &member.id)?
            .with("user", |out| self.users.write(tx, Some(member.user), out))?
            .field("level", &member.level)?
            .field("joined_at", &member.joined_at)?
            .field("updated_at", &member.updated_at)?
            .raw("is_2fa_enabled", b"false")
            .raw("has_social_auth", b"false")
            .raw("last_login", b"null")
            .with("invited_by", |out| self.inviters.write(tx, inviter, out))?
            .field("joined_by", &origin.map(|origin| origin.joined_by))?
            .end();
        Ok(())
    }
}
