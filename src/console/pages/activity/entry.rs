//! An entry of the log, as the API describes it.

use serde::Deserialize;
use serde_json::Value;

use crate::console::person::Person;

/// An entry.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    /// The user, or none for the operator.
    pub(super) user: Option<Person>,
    pub(super) scope: String,
    pub(super) item_id: String,
    pub(super) activity: String,
    pub(super) detail: Detail,
    pub(super) created_at: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Detail {
    pub(super) name: Option<String>,
    pub(super) changes: Vec<Change>,
}

/// A field that changed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Change {
    pub(super) field: String,
    pub(super) before: Value,
    pub(super) after: Value,
}

/// A page of the log.
#[derive(Deserialize)]
pub(super) struct Entries {
    pub(super) count: u64,
    pub(super) results: Vec<Entry>,
}

impl Entry {
    /// Returns the name of the user, or the operator.
    pub(super) fn actor(&self) -> String {
        self.user.as_ref().map_or("The operator".to_owned(), Person::name)
    }
}
