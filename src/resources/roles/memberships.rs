//! The members of a role.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{OrganizationId, RoleId, RoleMembershipId, UserId};
use crate::resources::members::Membership;
use crate::store::{Index, Key, Reference, Table, Tx, impl_record};
use crate::time::Timestamp;

use super::Role;

/// The membership of a member of the organization in a role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleMembership {
    /// The id of the organization.
    pub organization: OrganizationId,
    /// The id of the role.
    pub role: RoleId,
    /// The id of the user.
    pub user: UserId,
    /// The id of the role membership.
    pub id: RoleMembershipId,
    /// When the user joined the role.
    pub joined_at: Timestamp,
    /// When the role membership was last updated.
    pub updated_at: Timestamp,
    /// Whether lists show it, which they do if they show the member.
    pub listed: bool,
}

/// The role membership with an id.
pub const BY_ID: Index<RoleMembership, RoleMembershipId> =
    Index::unique(Table::RoleMembershipsById, |member| Some(member.id));
/// The roles of a member.
pub const BY_USER: Index<RoleMembership, (OrganizationId, UserId)> =
    Index::many(Table::RoleMembershipsByUser, |member| Some((member.organization, member.user)));
/// The listed members of a role, in the order in which they joined it.
pub const BY_JOINING: Index<RoleMembership, (OrganizationId, RoleId, Timestamp)> =
    Index::many(Table::RoleMembershipsByJoining, |member| {
        member.listed.then_some((member.organization, member.role, member.joined_at))
    });

impl_record!(RoleMembership {
    table: RoleMemberships,
    key: |member| -> (OrganizationId, RoleId, UserId) {
        (member.organization, member.role, member.user)
    },
    indexes: [&BY_ID, &BY_USER, &BY_JOINING],
    // The listed members of a role.
    counts: [|member| member.listed.then(|| (member.organization, member.role).encoded())],
    reuses_keys: true,
    owner: |member, _| Ok(Some(member.organization.owner())),
    references: |member| [
        Reference::to::<Role>(&(member.organization, member.role)),
        Reference::to::<Membership>(&(member.organization, member.user)),
    ],
});

/// Returns the roles of a member, without deleted ones.
pub fn of_user(tx: &impl Tx, organization: OrganizationId, user: UserId) -> Result<Vec<RoleId>> {
    let mut roles = Vec::new();
    for (_, role, _) in tx.keys(&BY_USER, &(organization, user), usize::MAX)? {
        if super::exists(tx, organization, role)? {
            roles.push(role);
        }
    }
    Ok(roles)
}
