//! Replacing the data file with a copy of it: after a compaction, and after a failed sync.

use std::path::Path;

use redb::Database;

use crate::error::Result;
use crate::store::changes::fill::fill;
use crate::store::changes::value_log::Visitor;
use crate::store::disk::engine::{begin, catch_panic};
use crate::store::disk::file;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::reads::progress::Progress;

/// Fills the copy at `draft` with the values that `source` passes on, and lets redb check what was written. Returns what
/// `source` returns.
pub(in crate::store) fn fill_copy<T>(
    copy: &mut Database,
    draft: &Path,
    progress: &Progress,
    source: impl FnOnce(&mut Visitor<'_>) -> Result<T>,
) -> Result<T, OpenError> {
    let passed = fill(begin(copy)?, source)?;
    progress.begin("checking the structure", 0);
    match catch_panic(|| copy.check_integrity()) {
        Some(Ok(true)) => Ok(passed),
        _ => Err(OpenError::damaged(draft, &"its structure is not what was written")),
    }
}

/// Why a copy did not replace the data file.
pub(in crate::store) enum NotSwapped {
    /// Nothing was changed. For example, the data file is a mount point of its own.
    Kept(OpenError),
    /// A power cut could leave either of the two files.
    Unknown(OpenError),
}

/// Gives a complete copy the name of the data file.
pub(in crate::store) fn swap(fs: &FsHandle, draft: &Path, data: &Path) -> Result<(), NotSwapped> {
    if let Err(cause) = fs.file_system().rename(draft, data) {
        let refused = file::not_replaced(data)(cause);
        let is_kept = fs.file_system().is_file(draft).is_ok();
        return Err(if is_kept { NotSwapped::Kept(refused) } else { NotSwapped::Unknown(refused) });
    }
    file::sync_folder(fs, data).map_err(NotSwapped::Unknown)
}
