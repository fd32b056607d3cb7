//! A data file that another one replaced, and that snapshots still read.

use std::sync::OnceLock;

use redb::Database;

/// Keeps a file open. Each of its snapshots has it, and so does the writer until another file replaces this one.
#[derive(Default)]
pub(in crate::store) struct OpenedFile {
    /// The file, once it is replaced.
    replaced: OnceLock<Database>,
}

impl OpenedFile {
    /// Closes `database` when the last snapshot of it is dropped.
    pub(in crate::store) fn close_after_snapshots(&self, database: Database) {
        // If this failed, the file would be closed at once, and its snapshots would fail with 503.
        let _ = self.replaced.set(database);
    }
}

impl Drop for OpenedFile {
    /// Closes the file on a thread of its own: the operating system then frees its space, which takes long for a large file.
    fn drop(&mut self) {
        let Some(database) = self.replaced.take() else { return };
        let thread = std::thread::Builder::new().name("background".to_owned());
        if let Err(error) = thread.spawn(move || drop(database)) {
            tracing::debug!(%error, "a replaced data file is closed on this thread");
        }
    }
}
