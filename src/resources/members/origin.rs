//! The invite with which a member joined. A separate record, because the creator of an organization has none.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::time::Timestamp;
use crate::ids::{MembershipId, OrganizationId, UserId};
use crate::store::{Reference, impl_record};

use super::Membership;

/// How a user received the invite that they accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinedBy {
    /// By a link that a member handed over, which does not prove the address.
    Link,
    /// By the mail to the invite's address, which proves the address.
    Mail,
}

/// The invite with which a member joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembershipOrigin {
    /// The id of the organization.
    pub organization: OrganizationId,
    /// The id of the user.
    pub user: UserId,
    /// The id of the membership.
    pub membership: MembershipId,
    /// The user that created the invite.
    pub invited_by: Option<UserId>,
    /// How the user received the invite.
    pub joined_by: JoinedBy,
    /// If the user took over an account by joining, when that account was created.
    pub took_over: Option<Timestamp>,
}

impl_record!(MembershipOrigin {
    table: MembershipOrigins,
    key: |origin| -> (OrganizationId, UserId) { (origin.organization, origin.user) },
    reuses_keys: true,
    owner: |origin, _| Ok(Some(origin.organization.owner())),
    references: |origin| [Reference::to::<Membership>(&(origin.organization, origin.user))],
});
