//! The names and owners of files: where what belongs to a data file is, and how a complete file gets its name, so that no power
//! cut leaves half a file and no file is lost.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::geteuid;

use super::file_system::{FsHandle, open_no_follow};
use super::open_error::OpenError;

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

/// Gives a complete file its name, unless something has it. The draft keeps its own name at most until it is removed.
pub fn publish(fs: &FsHandle, draft: &Path, data: &Path) -> Result<(), OpenError> {
    let linked = match fs.file_system().link(draft, data) {
        Err(cause) if lacks_links(&cause) => fs.file_system().rename_new(draft, data),
        linked => linked,
    };
    linked.map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => OpenError::Exists(data.to_owned()),
        _ if lacks_links(&cause) => OpenError::Other(format!(
            "cannot create {}: its file system has no hard links, and no other way to give a file a name without replacing another ({cause}); use another disk",
            data.display()
        )),
        _ => OpenError::io("create", data)(cause),
    })
}

/// Whether a call failed because the file system does not have it. `exFAT`, many file systems of FUSE, of networks and Android
/// have no hard links, and each says so in its own way.
fn lacks_links(cause: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, TooManyLinks, Unsupported};
    matches!(cause.kind(), PermissionDenied | Unsupported | InvalidInput | TooManyLinks)
        || Errno::from_io_error(cause) == Some(Errno::OPNOTSUPP)
}

/// Replaces the file at `data` with the file at `new`. A crash leaves one or the other. Returns the path
/// under which the old file was kept, if one existed: `data` with `suffix`.
pub fn replace(
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
pub fn free_name(fs: &FsHandle, data: &Path, suffix: &str) -> PathBuf {
    let is_free = |name: &PathBuf| fs.file_system().is_file(name).is_err() && !name.is_symlink();
    names_beside(data, suffix).find(is_free).unwrap_or_else(|| beside(data, suffix))
}

/// Returns `data` with `suffix`, then with `suffix` and each number from 2 on.
fn names_beside(data: &Path, suffix: &str) -> impl Iterator<Item = PathBuf> {
    let numbered = (2_u32..).map(move |number| beside(data, &format!("{suffix}-{number}")));
    std::iter::once(beside(data, suffix)).chain(numbered)
}

/// Gives the file at `data`, if it exists, a second name that is still free.
fn link_old(fs: &FsHandle, data: &Path, suffix: &str) -> Result<Option<PathBuf>, OpenError> {
    for name in names_beside(data, suffix) {
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
                return Err(not_replaced(data)(cause));
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
pub fn not_replaced(data: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let data = data.to_owned();
    move |cause| {
        if is_of_mount(&cause) {
            OpenError::Other(format!(
                "cannot replace {}: it is a mount of its own, such as a single file that is mounted into a container; mount its folder instead",
                data.display()
            ))
        } else {
            OpenError::io("replace", &data)(cause)
        }
    }
}

/// Copies the file at `from` to a new file at `to`, and syncs its bytes.
pub fn copy(from: &Path, to: &Path) -> Result<(), OpenError> {
    let opened = open_no_follow(OpenOptions::new().read(true), from);
    let mut source = opened.map_err(OpenError::io("open", from))?;
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).mode(0o600).open(to);
    let mut target = created.map_err(OpenError::io("create", to))?;
    let copied = io::copy(&mut source, &mut target).and_then(|_| target.sync_all());
    copied.map_err(|cause| {
        let _ = fs::remove_file(to);
        OpenError::io("write", to)(cause)
    })
}

/// Makes the name of `data` durable.
pub fn sync_folder(fs: &FsHandle, data: &Path) -> Result<(), OpenError> {
    let folder = folder_of(data);
    fs.file_system().sync_folder(folder).map_err(OpenError::io("sync", folder))
}

/// Gives the new file at `new` to the owner of the file at `data`, which it will replace. If that does not exist, it gives
/// the file as [`give_to_owner`] does.
///
/// # Errors
/// When the file at `data` has another owner, and this process cannot change that of the new one.
pub fn adopt(new: &Path, data: &Path) -> Result<(), OpenError> {
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
