//! An entry of the log, as the API describes it.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::console::api::Operation;
use crate::console::model::Person;
use crate::console::visit::SignedIn;
use crate::error::Result;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    /// The user; `None` for the operator.
    pub(super) user: Option<Person>,
    pub(super) scope: String,
    pub(super) item_id: String,
    pub(super) activity: String,
    pub(super) detail: Detail,
    /// The project of the object. [`keep_open_projects`] removes it if the session cannot open the project.
    pub(super) project_id: Option<u64>,
    pub(super) created_at: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Detail {
    pub(super) name: Option<String>,
    /// The short ID of an insight.
    pub(super) short_id: Option<String>,
    pub(super) changes: Vec<Change>,
}

/// A field that changed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Change {
    pub(super) field: String,
    pub(super) before: Value,
    pub(super) after: Value,
}

/// Removes the projects that the session cannot open from entries: those that were deleted since.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn keep_open_projects(request: &SignedIn, entries: &mut [Entry]) -> Result<()> {
    let mut known: HashMap<u64, bool> = HashMap::new();
    for entry in entries {
        let Some(project) = entry.project_id else { continue };
        let is_open = if let Some(is_open) = known.get(&project) {
            *is_open
        } else {
            let log = Operation::new("activity_log_list", [project.to_string().as_str()]);
            request.api.may(&log).await?
        };
        known.insert(project, is_open);
        entry.project_id = entry.project_id.filter(|_| is_open);
    }
    Ok(())
}

impl Entry {
    /// Returns the name of the user, or the operator.
    pub(super) fn actor(&self) -> String {
        self.user.as_ref().map_or("The operator".to_owned(), Person::name)
    }
}
