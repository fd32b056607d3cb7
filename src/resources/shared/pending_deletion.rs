//! Cascading deletion: marks a deleted organization, project, membership or role whose records are not yet deleted.

use serde::{Deserialize, Serialize};

use crate::ids::{OrganizationId, ProjectId, RoleId, UserId};
use crate::store::{Record, impl_record};

/// The bit that marks the key of a removed member. Ids of projects are smaller.
const MEMBER_BIT: u64 = 1 << 63;

/// A deleted organization, project, membership or role whose records must still be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PendingDeletion {
    /// A project, with the organization that it was in.
    Project(OrganizationId, ProjectId),
    /// An organization.
    Organization(OrganizationId),
    /// A user that was removed from the organization. The user cannot join it again until the deletion is complete,
    /// because leftover permissions would apply again.
    Member(OrganizationId, UserId),
    /// A role that was deleted in the organization.
    Role(OrganizationId, RoleId),
}

impl PendingDeletion {
    /// Returns the organization whose records are deleted.
    pub fn organization(&self) -> OrganizationId {
        self.key().0
    }
}

impl_record!(PendingDeletion {
    table: Sweeps,
    // The organization, then the role, or none and 0, the id of the project, or the id of the user with `MEMBER_BIT` set.
    key: |deletion| -> (OrganizationId, Option<RoleId>, u64) {
        match deletion {
            Self::Organization(organization) => (*organization, None, 0),
            Self::Project(organization, project) => (*organization, None, project.0),
            Self::Member(organization, user) => (*organization, None, MEMBER_BIT | user.0),
            Self::Role(organization, role) => (*organization, Some(*role), 0),
        }
    },
    owner: |deletion, _| Ok(Some(deletion.key().0.owner())),
});
