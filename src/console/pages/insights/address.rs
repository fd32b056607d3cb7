//! The paths of an insight, in the console and in the API.

use crate::console::operation::{Operation, Write};
use crate::console::visit::Visit;
use crate::error::{Error, Result};

/// The ids in the path of a page about an insight.
pub(super) struct Address {
    pub(super) project: String,
    id: String,
}

impl Address {
    /// Reads the path of a page.
    ///
    /// # Errors
    /// 404 if an id is no number.
    pub(super) fn of(visit: &Visit) -> Result<Self> {
        let project = crate::console::pages::project_id(visit)?;
        let id = visit.parameter("id").parse::<u64>().map_err(|_| Error::not_found())?;
        Ok(Self { project, id: id.to_string() })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the path of the list.
    pub(super) fn list(&self) -> String {
        super::base(&self.project)
    }

    /// Returns the path of the insight's page, or of a page below it.
    pub(super) fn page(&self, rest: &str) -> String {
        format!("{}{}/{rest}", super::base(&self.project), self.id)
    }

    /// Returns the path of the insight in the API, or of a path below it.
    pub(super) fn api(&self, rest: &str) -> String {
        format!("/api/projects/{}/insights/{}/{rest}", self.project, self.id)
    }

    /// Returns an operation on the insight.
    pub(super) fn operation(&self, id: &'static str) -> Operation {
        Operation::new(id, [&self.project, &self.id])
    }

    /// Returns a request that changes the insight.
    pub(super) fn write(&self, id: &'static str) -> Write {
        Write::new(id, [&self.project, &self.id])
    }
}
