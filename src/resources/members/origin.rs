//! By whose invite a member joined. Kept apart from the membership, for most members of old have none.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::{MembershipId, OrganizationId, UserId};
use crate::store::{Owner, Record, Reference, Table, Tx};
use crate::time::Timestamp;

use super::Membership;

/// How an invite reached the member who accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinedBy {
    /// By a link that somebody handed over: the address is not proven by it.
    Link,
    /// By the mail to the invite's address.
    Mail,
}

/// By whose invite a member joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembershipOrigin {
    /// The organization.
    pub organization: OrganizationId,
    /// The user.
    pub user: UserId,
    /// The membership's own id.
    pub membership: MembershipId,
    /// Who invited the user.
    pub invited_by: Option<UserId>,
    /// How the invite reached the user.
    pub joined_by: JoinedBy,
    /// Since when the account existed that the user took over by joining, if the user took one over.
    pub took_over: Option<Timestamp>,
}

impl Record for MembershipOrigin {
    const TABLE: Table = Table::MembershipOrigins;
    const KEYS_COME_BACK: bool = true;
    type Key = (OrganizationId, UserId);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> (OrganizationId, UserId) {
        (self.organization, self.user)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Membership>(&(self.organization, self.user))]
    }
}
