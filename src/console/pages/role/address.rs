//! The paths of a role, in the console and in the API.

use crate::console::operation::Operation;
use crate::console::pages::{organization_id, uuid};
use crate::console::visit::Visit;
use crate::error::Result;

/// The ids in the path of a page about a role.
pub(super) struct Address {
    pub(super) organization: String,
    pub(super) id: String,
}

impl Address {
    /// Reads the path of a page.
    ///
    /// # Errors
    /// 404 if an id is no UUID.
    pub(super) fn of(visit: &Visit) -> Result<Self> {
        Ok(Self { organization: organization_id(visit)?, id: uuid(visit, "id")? })
    }

    pub(super) fn ids(&self) -> [&str; 2] {
        [&self.organization, &self.id]
    }

    /// Returns the path of the list.
    pub(super) fn list(&self) -> String {
        format!("/console/organizations/{}/roles/", self.organization)
    }

    /// Returns the path of the role's page.
    pub(super) fn page(&self) -> String {
        format!("{}{}/", self.list(), self.id)
    }

    pub(super) fn rename(&self) -> Operation {
        Operation::new("roles_partial_update", self.ids())
    }

    pub(super) fn add(&self) -> Operation {
        Operation::new("roles_role_memberships_create", self.ids())
    }
}
