//! Lists, as the API answers them.

use serde::Deserialize;

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct List<T> {
    /// The number of items on all pages.
    pub(super) count: u64,
    pub(super) results: Vec<T>,
}

impl<T> List<T> {
    /// Returns whether the page has all items.
    pub(super) fn is_complete(&self) -> bool {
        self.results.len() as u64 == self.count
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { count: 0, results: Vec::new() }
    }
}
