//! Where what belongs to a data file is.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Returns `data` with `.suffix` appended to its name. All files that belong to a data file have such names.
pub fn beside(data: &Path, suffix: &str) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(".");
    path.push(suffix);
    path.into()
}

/// Returns the folder that contains `data`.
pub fn folder_of(data: &Path) -> &Path {
    match data.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates a file without a name in `folder`, or, if nothing can be created there, in the folder for temporary files: that of
/// a backup may be read-only.
pub(in crate::store) fn unnamed_file(folder: &Path) -> io::Result<File> {
    match tempfile::tempfile_in(folder) {
        Err(cause)
            if matches!(
                cause.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            tempfile::tempfile()
        }
        created => created,
    }
}
