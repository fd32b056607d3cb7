//! Whether the data file still has its name. A file that was removed or replaced stays open, but what is written to it is
//! lost when the process ends.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::store::disk::file_system::{FileIdentity, FsHandle};

use super::Store;

/// Why a write is refused.
pub(super) const DISPLACED: &str = "the data file was removed or replaced";
/// How often that is logged while it lasts.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// The file that is open.
#[derive(Debug, Default)]
pub struct FilePlace(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// `None` if the file system does not tell.
    file: Option<FileIdentity>,
    /// When it was last logged that the file has lost its name.
    logged_at: Option<Instant>,
}

impl FilePlace {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the file at `path` was opened, or replaced the open file.
    pub fn note(&self, fs: &FsHandle, path: &Path) {
        let file = fs.file_system().identity(path).ok().flatten();
        *self.known() = Known { file, logged_at: None };
    }

    /// Whether `path` now names another file or none. Logs it. Call it on the writer thread, which replaces the file.
    pub(super) fn is_displaced(&self, fs: &FsHandle, path: &Path) -> bool {
        let mut known = self.known();
        let is_displaced = known.is_displaced(fs, path);
        let was_logged = known.logged_at.is_some_and(|at| at.elapsed() < LOG_INTERVAL);
        if is_displaced && !was_logged {
            known.logged_at = Some(Instant::now());
            tracing::error!(
                data = %path.display(),
                "{DISPLACED} while it is open, and takes no write; save what it holds with `steward backup` before you stop the server"
            );
        } else if !is_displaced && known.logged_at.take().is_some() {
            tracing::info!(data = %path.display(), "the data file is in its place again");
        }
        is_displaced
    }
}

impl Known {
    fn is_displaced(&self, fs: &FsHandle, path: &Path) -> bool {
        let Some(file) = self.file else { return false };
        match fs.file_system().identity(path) {
            Ok(found) => found.is_some_and(|found| found != file),
            Err(cause) => cause.kind() == io::ErrorKind::NotFound,
        }
    }
}

impl Store {
    /// Whether the data file seems to have its name. While the file is replaced, the answer may be wrong: a write tells.
    pub(crate) fn seems_in_place(&self) -> bool {
        self.is_shared() || !self.shared.place.known().is_displaced(&self.fs, &self.path)
    }
}
