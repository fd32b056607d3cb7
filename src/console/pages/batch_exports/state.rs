//! The actions that pause and unpause a batch export.

use serde_json::json;

use crate::console::api::Write;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// An action that changes the state of an export.
#[derive(Clone, Copy)]
pub(super) struct Action {
    /// The value of the button in the list.
    pub(super) name: &'static str,
    pub(super) operation: &'static str,
    pub(super) notice: &'static str,
}

pub(super) const PAUSE: Action = Action {
    name: "pause",
    operation: "projects_batch_exports_pause_create",
    notice: "export-paused",
};
pub(super) const UNPAUSE: Action = Action {
    name: "unpause",
    operation: "projects_batch_exports_unpause_create",
    notice: "export-unpaused",
};

impl Action {
    /// Sends the request for one export.
    ///
    /// # Errors
    /// The errors of the API.
    pub(super) async fn send(
        self,
        request: &SignedIn,
        project: &str,
        id: &str,
        once: &str,
    ) -> Result<()> {
        let write = Write::new(self.operation, [project, id]).body(json!({})).once(once);
        request.api.write(&write).await.map(drop)
    }
}
