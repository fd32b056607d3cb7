//! The paths of a member, in the console and in the API.

use crate::console::operation::Operation;
use crate::console::pages::{organization_id, uuid};
use crate::console::visit::Visit;
use crate::error::Result;

/// The ids in the path of a page about a member.
pub(super) struct Address {
    pub(super) organization: String,
    /// The UUID of the user.
    pub(super) user: String,
}

impl Address {
    /// Reads the path of a page.
    ///
    /// # Errors
    /// 404 if an id is no UUID.
    pub(super) fn of(visit: &Visit) -> Result<Self> {
        Ok(Self { organization: organization_id(visit)?, user: uuid(visit, "user_uuid")? })
    }

    /// Returns the path of the list.
    pub(super) fn list(&self) -> String {
        format!("/console/organizations/{}/members/", self.organization)
    }

    /// Returns the path of the member's page.
    pub(super) fn page(&self) -> String {
        format!("{}{}/", self.list(), self.user)
    }

    /// Returns the path of the member in the API.
    pub(super) fn api(&self) -> String {
        format!("/api/organizations/{}/members/{}/", self.organization, self.user)
    }

    /// Returns the operation that changes the level.
    pub(super) fn update(&self) -> Operation {
        Operation::new("members_partial_update", [&self.organization, &self.user])
    }
}
