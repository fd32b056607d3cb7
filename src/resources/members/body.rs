//! How a member is shown.

use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::MembershipId;
use crate::json::Object;
use crate::resources::users::{self, Embedder};
use crate::store::Tx;
use crate::time::Timestamp;

use super::{JoinedBy, Level, Membership, MembershipOrigin};

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
    /// Who invited them; null for a member who joined without an invite, or before this was recorded.
    pub invited_by: Option<users::Shown>,
    /// How the invite reached them: `mail`, which proves the address, or `link`; null without an invite.
    pub joined_by: Option<JoinedBy>,
}

/// Writes members one after the other.
#[derive(Default)]
pub(super) struct Writer {
    users: Embedder,
    inviters: Embedder,
}

impl Writer {
    /// Appends the Member of the API document.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub(super) fn write(
        &mut self,
        tx: &impl Tx,
        member: &Membership,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let origin = tx.head::<MembershipOrigin>(&(member.organization, member.user))?;
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
