//! The paths of a batch export, in the console and in the API.

use crate::console::api::Versioned;
use crate::console::operation::Operation;
use crate::console::pages::{project_id, uuid};
use crate::console::visit::{SignedIn, Visit};
use crate::error::Result;

/// The ids in the path of a page about a batch export.
pub(super) struct Address {
    pub(super) project: String,
    pub(super) id: String,
}

impl Address {
    /// Reads the path of a page.
    ///
    /// # Errors
    /// 404 if an id is malformed.
    pub(super) fn of(visit: &Visit) -> Result<Self> {
        Ok(Self { project: project_id(visit)?, id: uuid(visit, "id")? })
    }

    /// Returns the path of the list.
    pub(super) fn list(&self) -> String {
        super::base(&self.project)
    }

    /// Returns the path of the export's page.
    pub(super) fn page(&self) -> String {
        format!("{}{}/", self.list(), self.id)
    }

    /// Returns an operation on the export.
    pub(super) fn operation(&self, id: &'static str) -> Operation {
        Operation::new(id, [&self.project, &self.id])
    }

    /// Reads the export.
    ///
    /// # Errors
    /// The errors of the API.
    pub(super) async fn read(&self, request: &SignedIn) -> Result<Versioned> {
        let path = format!("/api/projects/{}/batch_exports/{}/", self.project, self.id);
        request.api.get_versioned(&path).await
    }
}
