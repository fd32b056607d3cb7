//! Refusing a file with records of a newer release.

use crate::store::disk::open_error::OpenError;
use crate::store::format::migrate::require_known_layouts;
use crate::store::kinds::record_registry::RecordRegistry;
use crate::store::writer::Store;

impl Store {
    /// Fails if a newer release added members to records of this file. An older layout needs no migration: its records
    /// are completed when they are read.
    ///
    /// # Errors
    /// When a table has a layout that this release does not know, or the file cannot be read.
    pub(crate) fn require_known_layouts(&self, registry: &RecordRegistry) -> Result<(), OpenError> {
        require_known_layouts(&*self.snapshot()?, self.path(), registry)
    }
}
