//! The owner of new files. The user that runs a command may be another one than the user that the server runs as.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use rustix::process::geteuid;

use super::file_system::open_no_follow;
use super::open_error::OpenError;
use super::paths::folder_of;

/// Gives the new file at `new` to the owner of the file at `data`, which it will replace. If that does not exist, it gives
/// the file as [`give_to_owner`] does.
///
/// # Errors
/// When the file at `data` has another owner, and this process cannot change that of the new one.
pub(in crate::store) fn adopt(new: &Path, data: &Path) -> Result<(), OpenError> {
    let file = match open_no_follow(OpenOptions::new().read(true), new) {
        // Tests keep files elsewhere.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(OpenError::io("open", new))?,
    };
    if let Ok(old) = data.symlink_metadata() {
        give(&file, (old.uid(), old.gid())).map_err(OpenError::io("change the owner of", new))
    } else {
        give_to_owner(&file, data);
        Ok(())
    }
}

/// Gives a new file to the owner of the data file at `data` that it belongs to, or of its folder if there is no data file.
/// Only root can: the files of other users stay theirs.
pub fn give_to_owner(file: &File, data: &Path) {
    let owner = || data.symlink_metadata().or_else(|_| folder_of(data).metadata());
    if geteuid().is_root()
        && let Ok(owner) = owner()
        && let Err(error) = give(file, (owner.uid(), owner.gid()))
    {
        tracing::debug!(%error, data = %data.display(), "a file beside the data file stays root's");
    }
}

/// Changes the owner of a file that this process created.
fn give(file: &File, owner: (u32, u32)) -> io::Result<()> {
    let found = file.metadata()?;
    if (found.uid(), found.gid()) == owner {
        return Ok(());
    }
    // Another user who may write to the folder could have put a second name of a file of root in its place.
    if found.nlink() > 1 || found.uid() != geteuid().as_raw() {
        return Err(io::Error::other("it is not the file that was created"));
    }
    fchown(file, Some(owner.0), Some(owner.1))
}
