//! Giving a complete file its name, so that no power cut leaves half a file and no file is lost.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::super::file_system::FsHandle;
use super::super::open_error::OpenError;
use super::super::owner::adopt;
use super::{beside, copy, sync_folder};

/// Gives a complete file its name, unless something has it. The draft keeps its own name at most until it is removed.
pub(in crate::store) fn publish(fs: &FsHandle, draft: &Path, data: &Path) -> Result<(), OpenError> {
    let linked = match fs.file_system().link(draft, data) {
        Err(cause) if lacks_links(&cause) => fs.file_system().rename_new(draft, data),
        linked => linked,
    };
    linked.map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => OpenError::Exists(data.to_owned()),
        _ if lacks_links(&cause) => OpenError::NoNewNames { path: data.to_owned(), cause },
        _ => OpenError::io("create", data)(cause),
    })
}

/// Whether a call failed because the file system does not have it. `exFAT`, many file systems of FUSE, of networks and Android
/// have no hard links, and each says so in its own way.
fn lacks_links(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::TooManyLinks
    ) || Errno::from_io_error(cause) == Some(Errno::OPNOTSUPP)
}

/// Replaces the file at `data` with the file at `new`. A crash leaves one or the other. Returns the path
/// under which the old file was kept, if one existed: `data` with `suffix`.
pub(in crate::store) fn replace(
    fs: &FsHandle,
    data: &Path,
    new: &Path,
    suffix: &str,
) -> Result<Option<PathBuf>, OpenError> {
    let kept = link_old(fs, data, suffix)?;
    fs.file_system().rename(new, data).map_err(not_replaced(data))?;
    sync_folder(fs, data)?;
    Ok(kept)
}

/// Returns a name beside `data` that no file has: `data` with `suffix`, and a number if that is taken.
pub(in crate::store) fn free_name(fs: &FsHandle, data: &Path, suffix: &str) -> PathBuf {
    let is_free = |name: &PathBuf| fs.file_system().is_file(name).is_err() && !name.is_symlink();
    let mut names = (2_u32..).map(|number| beside(data, &format!("{suffix}-{number}")));
    let first = Some(beside(data, suffix)).filter(&is_free);
    first.or_else(|| names.find(is_free)).unwrap_or_else(|| beside(data, suffix))
}

/// Gives the file at `data`, if it exists, a second name that is still free.
fn link_old(fs: &FsHandle, data: &Path, suffix: &str) -> Result<Option<PathBuf>, OpenError> {
    let names = (1_u32..).map(|number| match number {
        1 => beside(data, suffix),
        number => beside(data, &format!("{suffix}-{number}")),
    });
    for name in names {
        let linked = match fs.file_system().link(data, &name) {
            // Without a moment in which the data file has no name.
            Err(cause) if lacks_links(&cause) => {
                copy(data, &name).and_then(|()| adopt(&name, data))
            }
            linked => linked.map_err(OpenError::io("create", &name)),
        };
        match linked {
            Ok(()) => return Ok(Some(name)),
            Err(OpenError::Io { cause, .. }) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(OpenError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => break,
            Err(OpenError::Io { cause, .. }) if is_of_mount(&cause) => {
                return Err(OpenError::MountPoint(data.to_owned()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether a file cannot be renamed or linked because it is a mount of its own.
fn is_of_mount(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices)
}

/// Returns the error of a rename onto the data file.
pub(in crate::store) fn not_replaced(data: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let data = data.to_owned();
    move |cause| {
        if is_of_mount(&cause) {
            OpenError::MountPoint(data)
        } else {
            OpenError::io("replace", &data)(cause)
        }
    }
}
