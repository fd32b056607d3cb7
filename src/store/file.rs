//! The data file: its lock, its creation, its opening.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, DatabaseError, StorageError};

use super::disk::{DiskFile, Drive, open_itself};
use super::open_error::OpenError;
use super::overlay::Overlay;
use super::panics::caught;
use super::rewrite;

/// The lock beside a data file. Whoever opens, makes or replaces the file holds it all the while; it
/// ends with the process, however that ends.
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// Whether there was no lock file before.
    fresh: bool,
}

impl Lock {
    /// Takes the lock of a file that is there and may be ours, and leaves nothing beside one that is not.
    pub(super) fn take_for_existing(drive: &Drive, data: &Path) -> Result<Self, OpenError> {
        recognize(drive, data)?;
        Self::take(data)
    }

    /// Takes the lock, or says that another process has it.
    pub(super) fn take(data: &Path) -> Result<Self, OpenError> {
        let path = beside(data, "lock");
        loop {
            let (file, fresh) = open_lock(&path).map_err(OpenError::io("create", &path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(data.to_owned())),
                Err(TryLockError::Error(cause)) => return Err(OpenError::io("lock", &path)(cause)),
            }
            // Between the two steps whoever held it may have withdrawn it.
            if lies_at(&file, &path).map_err(OpenError::io("lock", &path))? {
                return Ok(Self { file, path, fresh });
            }
        }
    }

    /// Lets go of it, and leaves no lock file where there was none.
    pub(super) fn withdraw(self) {
        if self.fresh {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for Lock {
    /// Closing the file alone would not do: a process that another thread is just starting holds a copy of it until
    /// its own program runs.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// The lock file, and whether it was made for this.
fn open_lock(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map(|file| (file, true)),
    }
    let file = open_itself(options.create(true).truncate(false), path)?;
    Ok((file, false))
}

/// Whether the open `file` is the one that `path` names.
fn lies_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((held.dev(), held.ino()) == (named.dev(), named.ino())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

/// The file that a symbolic link leads to, for a path that a user named. Every other name is opened without following
/// a link: somebody else may have put it there.
pub fn resolve(path: &Path) -> PathBuf {
    let target = if path.is_symlink() { path.canonicalize().ok() } else { None };
    target.unwrap_or_else(|| path.to_owned())
}

/// `data` with `.suffix` added to its name: where everything that belongs to the file lies.
pub fn beside(data: &Path, suffix: &str) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(".");
    path.push(suffix);
    path.into()
}

/// Makes a new data file at `data`: `fill` puts into it what it is to begin with, then the whole
/// appears at once.
///
/// The file grows under a temporary name and is linked into place only when it is complete and on
/// disk: a cut at any moment leaves either nothing or all of it (a cut during redb's own creation can
/// leave a file that never opens). Linking refuses to overwrite.
pub(super) fn create(
    drive: &Drive,
    data: &Path,
    cache: usize,
    fill: impl FnOnce(&mut Database) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    require_absent(drive, data)?;
    remove_draft(drive, data)?;
    let draft = draft(data);
    let outcome =
        fill_draft(drive, &draft, cache, fill).and_then(|()| publish(drive, &draft, data));
    let removed = remove_draft(drive, data);
    outcome?;
    removed?;
    sync_folder(drive, data)
}

/// Refuses to make what is there already.
pub(super) fn require_absent(drive: &Drive, data: &Path) -> Result<(), OpenError> {
    match drive.disk().is_file(data) {
        Ok(_) => Err(OpenError::Exists(data.to_owned())),
        // What points nowhere is there too.
        Err(_) if data.is_symlink() => Err(OpenError::Exists(data.to_owned())),
        Err(_) => Ok(()),
    }
}

/// Where a new data file grows.
fn draft(data: &Path) -> PathBuf {
    beside(data, "creating")
}

/// Removes what a cut during creation left: a draft, or a second name of the file itself; and what one while
/// the file was written anew left.
pub(super) fn remove_draft(drive: &Drive, data: &Path) -> Result<(), OpenError> {
    remove(drive, &rewrite::draft(data))?;
    remove(drive, &draft(data))
}

/// Makes a file at `draft`, which `fill_in` fills, and has its bytes on disk, though not yet its name.
pub(super) fn fill_draft(
    drive: &Drive,
    draft: &Path,
    cache: usize,
    fill_in: impl FnOnce(&mut Database) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let file = new_draft(drive, draft)?;
    let mut database = builder(cache)
        .create_with_backend(drive.medium(Arc::clone(&file)))
        .map_err(|cause| OpenError::io("write", draft)(io::Error::other(cause)))?;
    fill_in(&mut database)?;
    drop(database);
    file.sync().map_err(OpenError::io("sync", draft))
}

fn new_draft(drive: &Drive, draft: &Path) -> Result<Arc<dyn DiskFile>, OpenError> {
    drive.disk().create(draft).map_err(OpenError::io("create", draft))
}

/// Copies the file at `from` to a new one at `to`, and has it on disk.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), OpenError> {
    let opened = open_itself(OpenOptions::new().read(true), from);
    let mut source = opened.map_err(OpenError::io("open", from))?;
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).mode(0o600).open(to);
    let mut target = created.map_err(OpenError::io("create", to))?;
    let copied = io::copy(&mut source, &mut target).and_then(|_| target.sync_all());
    copied.map_err(OpenError::io("write", to))
}

/// Puts the file at `new` in the place of the one at `data`: a cut at any moment leaves the one or the other.
/// Answers where the file lies that was there, if one was: beside `data`, with `suffix`.
pub(super) fn replace(
    drive: &Drive,
    data: &Path,
    new: &Path,
    suffix: &str,
) -> Result<Option<PathBuf>, OpenError> {
    let kept = keep(drive, data, suffix)?;
    drive.disk().rename(new, data).map_err(OpenError::io("replace", data))?;
    sync_folder(drive, data)?;
    Ok(kept)
}

/// Has the file at `new` belong to whom the one at `data` belongs to, where there is one: whoever restores need not be
/// who serves.
pub(super) fn give_owner_of(data: &Path, new: &Path) -> Result<(), OpenError> {
    let (Ok(old), Ok(made)) = (data.symlink_metadata(), new.symlink_metadata()) else {
        return Ok(());
    };
    if (old.uid(), old.gid()) == (made.uid(), made.gid()) {
        return Ok(());
    }
    lchown(new, Some(old.uid()), Some(old.gid())).map_err(OpenError::io("give to its owner", new))
}

/// Gives the file at `data`, if there is one, a second name that nothing has.
fn keep(drive: &Drive, data: &Path, suffix: &str) -> Result<Option<PathBuf>, OpenError> {
    let names = (1_u32..).map(|number| match number {
        1 => beside(data, suffix),
        number => beside(data, &format!("{suffix}-{number}")),
    });
    for name in names {
        match drive.disk().link(data, &name) {
            Ok(()) => return Ok(Some(name)),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => break,
            Err(cause) => return Err(OpenError::io("create", &name)(cause)),
        }
    }
    Ok(None)
}

/// Removes the file at `path`, if there is one.
pub(super) fn remove(drive: &Drive, path: &Path) -> Result<(), OpenError> {
    match drive.disk().remove(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(OpenError::io("remove", path)(cause))
        }
        _ => Ok(()),
    }
}

fn publish(drive: &Drive, draft: &Path, data: &Path) -> Result<(), OpenError> {
    drive.disk().link(draft, data).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => OpenError::Exists(data.to_owned()),
        _ => OpenError::io("create", data)(cause),
    })
}

/// The folder in which `data` lies.
pub fn folder_of(data: &Path) -> &Path {
    match data.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Has on disk which file `data` names.
pub(super) fn sync_folder(drive: &Drive, data: &Path) -> Result<(), OpenError> {
    let folder = folder_of(data);
    drive.disk().sync_folder(folder).map_err(OpenError::io("sync", folder))
}

/// Lets `look` into the existing file at `data` without a change to it, whatever it is and whatever state
/// it is in. redb is never let near a file that is not one of its own by the first bytes.
pub(super) fn inspect<T>(
    drive: &Drive,
    data: &Path,
    cache: usize,
    look: impl FnOnce(&Database) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let file = recognize(drive, data)?;
    let overlay = Overlay::new(drive.medium(file)).map_err(OpenError::io("open", data))?;
    let shown = guarded(data, || builder(cache).create_with_backend(overlay))?;
    // Names of tables are read here first, and redb panics over those too.
    caught(move || look(&shown)).ok_or_else(|| senseless(data))?
}

/// Opens the existing file at `data`.
///
/// Its name is on disk first: whoever gave it to the file may have been cut off before that was so, and what is
/// acknowledged from here on must be found under it.
pub(super) fn open(drive: &Drive, data: &Path, cache: usize) -> Result<Database, OpenError> {
    let file = recognize(drive, data)?;
    sync_folder(drive, data)?;
    guarded(data, || builder(cache).create_with_backend(drive.medium(file)))
}

/// Opens with redb, which panics over some of what it does not expect in a file.
fn guarded(
    data: &Path,
    open: impl FnOnce() -> Result<Database, DatabaseError>,
) -> Result<Database, OpenError> {
    let opened = caught(open).ok_or_else(|| senseless(data))?;
    opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(data.to_owned()),
        DatabaseError::Storage(StorageError::Io(cause)) if !beyond_reading(&cause) => {
            OpenError::io("open", data)(cause)
        }
        error => OpenError::damaged(data, &error),
    })
}

fn senseless(data: &Path) -> OpenError {
    OpenError::damaged(data, &"redb cannot make sense of it")
}

/// Whether it is what was read that is at fault, and not the reading.
fn beyond_reading(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// The first bytes of every redb file.
const REDB_MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// Opens a file that is there and one of redb's.
fn recognize(drive: &Drive, data: &Path) -> Result<Arc<dyn DiskFile>, OpenError> {
    let is_file = drive.disk().is_file(data).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => OpenError::Missing(data.to_owned()),
        _ => OpenError::io("open", data)(cause),
    })?;
    if !is_file {
        return Err(OpenError::NotAFile(data.to_owned()));
    }
    let file = drive.disk().open(data).map_err(OpenError::io("open", data))?;
    let mut magic = [0; REDB_MAGIC.len()];
    match file.read(0, &mut magic) {
        Ok(()) if magic == *REDB_MAGIC => Ok(file),
        Ok(()) => Err(OpenError::Foreign(data.to_owned())),
        Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => {
            Err(OpenError::Foreign(data.to_owned()))
        }
        Err(cause) => Err(OpenError::io("read", data)(cause)),
    }
}

pub(super) fn builder(cache: usize) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(cache);
    builder
}
