//! What was removed, and left records behind that are still to be removed.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::store::{Owner, Record, Table, Tx};

/// Marks the keys of removed members: numbers of projects stay below.
const MEMBER: u64 = 1 << 63;

/// A removed organization, project or membership whose records have yet to be swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sweep {
    /// A project, and the organization it was in.
    Project(OrganizationId, ProjectId),
    /// An organization.
    Organization(OrganizationId),
    /// A user who was a member of the organization. The user cannot join it again before the sweep has ended: what
    /// the member was granted would hold again.
    Member(OrganizationId, UserId),
}

impl Record for Sweep {
    const TABLE: Table = Table::Sweeps;
    /// The organization, and zero, the project or the member.
    type Key = (OrganizationId, u64);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        match self {
            Self::Organization(organization) => (*organization, 0),
            Self::Project(organization, project) => (*organization, project.0),
            Self::Member(organization, user) => (*organization, MEMBER | user.0),
        }
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.key().0.owner()))
    }
}
