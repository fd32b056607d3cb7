//! The data file: how it is locked, created, opened and replaced.

pub use super::file_names::{beside, folder_of};
pub(in crate::store) use super::file_names::{
    copy, free_name, not_replaced, publish, replace, sync_folder,
};

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, DatabaseError, StorageError};

use super::engine::{catch_panic, close};
use super::file_names::{adopt, give_to_owner};
use super::file_system::{FileSystem, FsFile, FsHandle, open_no_follow};
use super::open_error::OpenError;
use super::overlay::Overlay;

/// The lock file beside a data file. A process holds the lock while it opens, creates or replaces the data
/// file. The operating system releases the lock when the process exits for any reason.
pub struct FileLock {
    /// `None` if the lock file does not exist: for a reader, or on a disk without other processes.
    file: Option<File>,
    path: PathBuf,
    /// Whether this process created the lock file.
    is_new: bool,
}

impl FileLock {
    /// Locks an existing redb file. Creates no lock file beside a file that redb did not write.
    pub fn acquire_existing(fs: &FsHandle, data: &Path) -> Result<Self, OpenError> {
        open_redb_file(fs, data, &|disk| disk.open(data))?;
        Self::acquire_on(fs, data)
    }

    /// Acquires the lock of a file of this disk, as [`acquire`](Self::acquire) does.
    pub fn acquire_on(fs: &FsHandle, data: &Path) -> Result<Self, OpenError> {
        if fs.file_system().outlives_process() {
            return Self::acquire(data);
        }
        Ok(Self { file: None, path: data.to_owned(), is_new: false })
    }

    /// Shares the lock of an existing redb file with other readers. Creates no lock file.
    pub fn acquire_shared(fs: &FsHandle, data: &Path) -> Result<Self, OpenError> {
        open_redb_file(fs, data, &|disk| disk.open_to_read(data))?;
        let path = beside(data, "lock");
        let file = match open_no_follow(OpenOptions::new().read(true), &path) {
            // It may belong to another user. A process that writes the file also locks the file itself.
            Err(cause) if is_out_of_reach(&cause) => None,
            opened => Some(opened.map_err(OpenError::io("open", &path))?),
        };
        match file.as_ref().map_or(Ok(()), File::try_lock_shared) {
            Ok(()) => Ok(Self { file, path, is_new: false }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(data.to_owned())),
            Err(TryLockError::Error(cause)) => Err(OpenError::io("lock", &path)(cause)),
        }
    }

    /// Acquires the lock.
    ///
    /// # Errors
    /// [`OpenError::InUse`] when another process holds it.
    pub fn acquire(data: &Path) -> Result<Self, OpenError> {
        let path = beside(data, "lock");
        loop {
            let (file, is_new) = open_lock(&path).map_err(OpenError::io("create", &path))?;
            if is_new {
                give_to_owner(&file, data);
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(data.to_owned())),
                Err(TryLockError::Error(cause)) => return Err(OpenError::io("lock", &path)(cause)),
            }
            // Between opening and locking, the previous holder may have removed the lock file.
            if is_same_file(&file, &path).map_err(OpenError::io("lock", &path))? {
                return Ok(Self { file: Some(file), path, is_new });
            }
        }
    }

    /// Releases the lock, and removes the lock file, also if another process created it.
    pub fn remove(mut self) {
        self.is_new = true;
        self.release();
    }

    /// Releases the lock, and removes the lock file if this process created it.
    pub fn release(self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for FileLock {
    /// Unlocks explicitly. Closing the file is not enough: a child process that another thread is starting
    /// holds a copy of the descriptor until it executes its program.
    fn drop(&mut self) {
        let _ = self.file.as_ref().map(File::unlock);
    }
}

/// Whether there is no such file for this user.
fn is_out_of_reach(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Opens the lock file. Returns whether it was created.
fn open_lock(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created.map(|file| (file, true)),
    }
    let file = open_no_follow(options.create(true).truncate(false), path)?;
    Ok((file, false))
}

/// Whether `path` still names the open `file`.
fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((held.dev(), held.ino()) == (named.dev(), named.ino())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

/// Returns the target of a symbolic link, for a path that the user passed. Steward opens all other paths
/// without following links, because another user may have created the link.
///
/// # Errors
/// When the target cannot be reached: its disk may not be mounted, so nothing may be created in its place.
pub fn follow_link(path: &Path) -> Result<PathBuf, OpenError> {
    let Ok(target) = path.read_link() else { return Ok(path.to_owned()) };
    path.canonicalize().map_err(|cause| {
        OpenError::Other(format!(
            "{} is a symbolic link to {}, which cannot be reached ({cause}); mount the disk of the target, or name a path that is no link",
            path.display(),
            target.display()
        ))
    })
}

/// The owner of a new file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user that runs this process, as for every file that a command was asked to write.
    Caller,
    /// The owner of the folder if root runs this process: the user whose server opens the file.
    OfFolder,
}

/// Creates a data file at `data` and fills it with `fill`. Returns what `fill` returns.
///
/// The file appears complete or not at all. It is written under a temporary name and linked to `data` only
/// when it is complete and on disk, because a cut during redb's own creation can leave a file that never
/// opens. Linking does not overwrite an existing file.
pub fn create<T>(
    fs: &FsHandle,
    data: &Path,
    owner: Owner,
    cache: usize,
    fill: impl FnOnce(&mut Database) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    require_absent(fs, data)?;
    let write = |draft: &Path| fill_draft(fs, draft, cache, fill);
    create_as(fs, data, write, |draft| {
        if owner == Owner::OfFolder {
            adopt(draft, data)?;
        }
        publish(fs, draft, data)
    })
}

/// Creates a data file as [`create`] does, in the place of the one at `data`, if there is one. Until the new file is complete
/// and on disk, the old one keeps its name.
pub fn recreate<T>(
    fs: &FsHandle,
    data: &Path,
    cache: usize,
    fill: impl FnOnce(&mut Database) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let write = |draft: &Path| fill_draft(fs, draft, cache, fill);
    create_as(fs, data, write, |draft| {
        adopt(draft, data)?;
        fs.file_system().rename(draft, data).map_err(not_replaced(data))
    })
}

/// Creates a data file that `write` writes under a temporary name. It gets its name from `give_name` when it is complete and
/// on disk.
pub fn create_as<T>(
    fs: &FsHandle,
    data: &Path,
    write: impl FnOnce(&Path) -> Result<T, OpenError>,
    give_name: impl FnOnce(&Path) -> Result<(), OpenError>,
) -> Result<T, OpenError> {
    remove_draft(fs, data)?;
    let draft = beside(data, CREATING);
    let outcome = write(&draft).and_then(|written| give_name(&draft).map(|()| written));
    let removed = remove_draft(fs, data);
    let written = outcome?;
    removed?;
    sync_folder(fs, data)?;
    Ok(written)
}

/// Fails if something exists at `data`.
pub fn require_absent(fs: &FsHandle, data: &Path) -> Result<(), OpenError> {
    match fs.file_system().is_file(data) {
        Ok(_) => Err(OpenError::Exists(data.to_owned())),
        // A dangling symbolic link also exists.
        Err(_) if data.is_symlink() => Err(OpenError::Exists(data.to_owned())),
        Err(_) => Ok(()),
    }
}

/// The suffix of the temporary name of a new data file.
const CREATING: &str = "creating";
/// The suffix of the temporary name of a rewritten data file.
pub const REWRITING: &str = "rewriting";
/// The suffix of the temporary name of a compacted copy of a data file.
pub const COMPACTING: &str = "compacting";

/// Removes the files that a crash may have left: an incomplete new file, a second name of the data file
/// itself, an incomplete rewrite, and an incomplete compacted copy.
pub fn remove_draft(fs: &FsHandle, data: &Path) -> Result<(), OpenError> {
    let drafts = [COMPACTING, REWRITING, CREATING];
    drafts.into_iter().try_for_each(|suffix| remove(fs, &beside(data, suffix)))
}

/// Creates a file at `draft`, fills it with `fill_in` and syncs its bytes. Does not sync its name.
pub fn fill_draft<T>(
    fs: &FsHandle,
    draft: &Path,
    cache: usize,
    fill_in: impl FnOnce(&mut Database) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let file = new_draft(fs, draft)?;
    change_draft(fs, draft, &file, cache, fill_in)
}

/// Passes the file at `draft` to `change` as a database, and syncs its bytes. An empty file becomes an empty database.
pub fn change_draft<T>(
    fs: &FsHandle,
    draft: &Path,
    file: &Arc<dyn FsFile>,
    cache: usize,
    change: impl FnOnce(&mut Database) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let mut database = open_draft(fs, draft, file, cache)?;
    let changed = change(&mut database)?;
    close_draft(database, draft, file)?;
    Ok(changed)
}

fn open_draft(
    fs: &FsHandle,
    draft: &Path,
    file: &Arc<dyn FsFile>,
    cache: usize,
) -> Result<Database, OpenError> {
    builder(cache)
        .create_with_backend(fs.backend(Arc::clone(file)))
        .map_err(|cause| OpenError::io("write", draft)(io::Error::other(cause)))
}

fn close_draft(database: Database, draft: &Path, file: &Arc<dyn FsFile>) -> Result<(), OpenError> {
    close(database)?;
    file.sync_data().map_err(OpenError::io("sync", draft))
}

pub fn new_draft(fs: &FsHandle, draft: &Path) -> Result<Arc<dyn FsFile>, OpenError> {
    fs.file_system().create(draft).map_err(OpenError::io("create", draft))
}

/// Removes the file at `path`, if it exists.
pub fn remove(fs: &FsHandle, path: &Path) -> Result<(), OpenError> {
    match fs.file_system().remove(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(OpenError::io("remove", path)(cause))
        }
        _ => Ok(()),
    }
}

/// Calls `read` with the existing file at `data`, in whatever state it is. Does not change the file. redb opens
/// only files that begin with its magic bytes.
pub fn inspect<T>(
    fs: &FsHandle,
    data: &Path,
    cache: usize,
    read: impl FnOnce(&Database) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let database = open_unchanged(fs, data, cache)?;
    // `read` is the first to read table names, and redb panics on some invalid ones.
    catch_panic(move || read(&database)).ok_or_else(|| unreadable(data))?
}

/// Opens the existing file at `data`. What is written to the database stays in memory.
fn open_unchanged(fs: &FsHandle, data: &Path, cache: usize) -> Result<Database, OpenError> {
    let file = open_redb_file(fs, data, &|disk| disk.open_to_read(data))?;
    let overlay = Overlay::new(file).map_err(OpenError::io("open", data))?;
    let backend = fs.separate().backend(Arc::new(overlay));
    catch_redb_panic(data, || builder(cache).create_with_backend(backend))
}

/// Opens the existing file at `data`.
///
/// Syncs its name first: a crash may have interrupted its creation before that, and every write acknowledged
/// from now on must be found under this name.
pub fn open(fs: &FsHandle, data: &Path, cache: usize) -> Result<Database, OpenError> {
    let file = open_redb_file(fs, data, &|disk| disk.open(data))?;
    sync_folder(fs, data)?;
    catch_redb_panic(data, || builder(cache).create_with_backend(fs.backend(file)))
}

/// Opens a file with redb, and turns its panics on invalid files into errors.
fn catch_redb_panic(
    data: &Path,
    open: impl FnOnce() -> Result<Database, DatabaseError>,
) -> Result<Database, OpenError> {
    let opened = catch_panic(open).ok_or_else(|| unreadable(data))?;
    opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(data.to_owned()),
        DatabaseError::Storage(StorageError::Io(cause)) if !is_content_error(&cause) => {
            OpenError::io("open", data)(cause)
        }
        error => OpenError::damaged(data, &error),
    })
}

fn unreadable(data: &Path) -> OpenError {
    OpenError::damaged(data, &"redb panicked while reading it")
}

/// Whether the bytes are invalid, as opposed to a failed read.
fn is_content_error(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// The first bytes of every redb file.
const REDB_MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// Opens a file of a file system.
type OpenFile<'o> = dyn Fn(&dyn FileSystem) -> io::Result<Arc<dyn FsFile>> + 'o;

/// Opens an existing file, which must begin with redb's magic bytes, by `open`.
fn open_redb_file(
    fs: &FsHandle,
    data: &Path,
    open: &OpenFile<'_>,
) -> Result<Arc<dyn FsFile>, OpenError> {
    let is_file = fs.file_system().is_file(data).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => OpenError::Missing(data.to_owned()),
        _ => OpenError::io("open", data)(cause),
    })?;
    if !is_file {
        return Err(OpenError::NotAFile(data.to_owned()));
    }
    let file = open(fs.file_system()).map_err(|cause| match cause.kind() {
        io::ErrorKind::WouldBlock => OpenError::InUse(data.to_owned()),
        _ => OpenError::io("open", data)(cause),
    })?;
    if has_redb_magic(&*file).map_err(OpenError::io("read", data))? {
        Ok(file)
    } else {
        Err(OpenError::Foreign(data.to_owned()))
    }
}

/// Whether a file begins as redb's files do.
pub fn has_redb_magic(file: &dyn FsFile) -> io::Result<bool> {
    let mut magic = [0; REDB_MAGIC.len()];
    match file.read(0, &mut magic) {
        Ok(()) => Ok(magic == *REDB_MAGIC),
        Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(cause) => Err(cause),
    }
}

pub fn builder(cache: usize) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(cache);
    builder
}
