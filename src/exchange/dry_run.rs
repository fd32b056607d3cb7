//! Dry runs: a request with `Dry-Run: true` runs with all checks and changes nothing. See `docs/spec/requests.md`.

use std::sync::{Arc, Mutex, PoisonError};

/// A request for a dry run. Its writes are undone. Clones share the activity entries that the response shows.
#[derive(Debug, Clone, Default)]
pub struct DryRun(Arc<Mutex<Option<Vec<u8>>>>);

impl DryRun {
    /// Sets the activity entries, as the text of a JSON array, or of null if the caller may not read them. A write that
    /// runs again replaces them.
    pub fn set_activity(&self, entries: Vec<u8>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(entries);
    }

    /// Takes the activity entries. A request that wrote nothing has an empty array.
    pub fn take_activity(&self) -> Vec<u8> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        entries.unwrap_or_else(|| b"[]".to_vec())
    }
}
