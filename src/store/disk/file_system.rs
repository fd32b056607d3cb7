//! The file system that holds the data file.
//!
//! The service uses [`OsFileSystem`]. A test can pass another [`FileSystem`] in [`Config`](crate::Config), to decide
//! what a power cut loses, which access fails, and which bit is flipped.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::BackendError;
use redb::backends::FileBackend;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

/// A file system: that of the operating system, of which an implementation replaces parts. A change of a folder is durable once
/// the folder is synced. A power cut before that may lose any of the changes, each independently.
pub trait FileSystem: Debug + Send + Sync + 'static {
    /// Whether `path` names a regular file.
    ///
    /// # Errors
    /// `NotFound` if nothing exists at `path`.
    fn is_file(&self, path: &Path) -> io::Result<bool> {
        fs::metadata(path).map(|found| found.is_file())
    }

    /// Opens the file at `path` for reading and writing. Does not follow a symbolic link.
    ///
    /// # Errors
    /// The error of the operating system; an error if `path` is a symbolic link.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        wrap_file(open_no_follow(OpenOptions::new().read(true).write(true), path)?)
    }

    /// Opens the file at `path` for reading alone. Does not follow a symbolic link.
    ///
    /// # Errors
    /// `WouldBlock` if a process has the file open for writing; otherwise as [`open`](Self::open).
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        let file = open_no_follow(OpenOptions::new().read(true), path)?;
        match file.try_lock_shared() {
            // A file system without locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Arc::new(ReadFile(file))),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Creates an empty file at `path` that only its owner may read.
    ///
    /// # Errors
    /// `AlreadyExists` if something exists at `path`.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        let mut options = OpenOptions::new();
        wrap_file(options.read(true).write(true).create_new(true).mode(0o600).open(path)?)
    }

    /// Creates a file without a name, in `folder` if possible. Nothing of it is left after a crash.
    fn create_unnamed(&self, folder: &Path) -> io::Result<File> {
        unnamed_file(folder)
    }

    /// Adds the name `to` to the file at `from`.
    ///
    /// # Errors
    /// `AlreadyExists` if something exists at `to`.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    /// Renames the file at `from` to `to`, and replaces a file that has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Renames the file at `from` to `to`, for file systems in which a file has one name only.
    ///
    /// # Errors
    /// `AlreadyExists` if something exists at `to`.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                // The empty file reserves the name, and no other file is replaced.
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
                fs::rename(from, to).inspect_err(|_| drop(fs::remove_file(to)))
            }
            renamed => Ok(renamed?),
        }
    }

    /// Removes a name.
    ///
    /// # Errors
    /// `NotFound` if nothing exists at `path`.
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Whether files outlive this process. Then a lock file beside a data file keeps other processes from it, and what is
    /// acknowledged survives a crash.
    fn outlives_process(&self) -> bool {
        true
    }

    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    /// Returns the identity of the file at `path`, or `None` if it is unknown.
    ///
    /// # Errors
    /// `NotFound` if nothing exists at `path`.
    fn identity(&self, path: &Path) -> io::Result<Option<FileIdentity>> {
        let found = fs::symlink_metadata(path)?;
        Ok(Some(FileIdentity { device: found.dev(), inode: found.ino() }))
    }

    /// Returns the space of the file system that holds `folder`, or `None` if it is unknown.
    fn space(&self, folder: &Path) -> io::Result<Option<FreeBytes>> {
        let found = rustix::fs::statvfs(folder)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Some(FreeBytes { free: bytes(found.f_bavail), total: bytes(found.f_blocks) }))
    }
}

/// Tells a file from every other while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// The device.
    pub device: u64,
    /// The number of the file there.
    pub inode: u64,
}

/// The space of a file system.
#[derive(Debug, Clone, Copy)]
pub struct FreeBytes {
    /// The bytes that this process can use.
    pub free: u64,
    /// The total size in bytes.
    pub total: u64,
}

/// The file system of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct OsFileSystem;

impl FileSystem for OsFileSystem {}

impl OsFileSystem {
    /// The file system that the service uses.
    pub fn shared() -> Arc<dyn FileSystem> {
        Arc::new(Self)
    }
}

/// Creates a file without a name in `folder`, or, if nothing can be created there, in the folder for temporary files: that of
/// a backup may be read-only.
pub fn unnamed_file(folder: &Path) -> io::Result<File> {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match tempfile::tempfile_in(folder) {
        Err(cause) if matches!(cause.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            tempfile::tempfile()
        }
        created => created,
    }
}

/// Opens the regular file at `path`. Does not follow a symbolic link, and does not block if `path` is a pipe.
///
/// # Errors
/// The error of the operating system; an error if `path` is a symbolic link or not a regular file.
pub(in crate::store) fn open_no_follow(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => io::Error::other("it is a symbolic link and was not followed"),
        _ => error,
    })?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is not a regular file"))
}

fn wrap_file(file: File) -> io::Result<Arc<dyn FsFile>> {
    Ok(Arc::new(FileBackend::new(file).map_err(io::Error::other)?))
}

/// A file of the operating system that is open for reading. While it is, no process opens the file as a database: redb
/// locks the whole file, too.
#[derive(Debug)]
struct ReadFile(File);

impl FsFile for ReadFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ReadFile {
    /// Unlocks explicitly: a child process that another thread is starting holds a copy of the descriptor.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// An open file, as redb uses it. Written data is durable once the file is synced. A power cut before that may lose any of the
/// written sectors, each independently. After a failed sync it is unknown which writes since the last successful one are on
/// disk, and reading the file does not show it.
pub use redb::StorageBackend as FsFile;

/// The disk of one store, and whether a sync on it failed.
#[derive(Debug, Clone)]
pub(in crate::store) struct FsHandle {
    file_system: Arc<dyn FileSystem>,
    sync_failed: Arc<AtomicBool>,
}

impl FsHandle {
    pub(in crate::store) fn new(file_system: Arc<dyn FileSystem>) -> Self {
        Self { file_system, sync_failed: Arc::default() }
    }

    /// Returns a handle of the same disk for another file, which tracks its own failed syncs.
    pub(in crate::store) fn separate(&self) -> Self {
        Self::new(Arc::clone(&self.file_system))
    }

    /// Returns a handle of the operating system's files.
    pub(in crate::store) fn os() -> Self {
        Self::new(OsFileSystem::shared())
    }

    pub(in crate::store) fn file_system(&self) -> &dyn FileSystem {
        &*self.file_system
    }

    /// Wraps an open file of this disk for redb.
    pub(in crate::store) fn backend(&self, file: Arc<dyn FsFile>) -> StoreBackend {
        StoreBackend { file, sync_failed: Arc::clone(&self.sync_failed) }
    }

    /// Whether a sync failed since the last call of [`clear_failed_sync`](Self::clear_failed_sync).
    pub(in crate::store) fn has_failed_sync(&self) -> bool {
        self.sync_failed.load(Ordering::Acquire)
    }

    /// Notes that the data file may not be on disk, as after a failed sync of it.
    pub(in crate::store) fn note_failed_sync(&self) {
        self.sync_failed.store(true, Ordering::Release);
    }

    /// Clears the failure: all committed data has been read back, rewritten and synced.
    pub(in crate::store) fn clear_failed_sync(&self) {
        self.sync_failed.store(false, Ordering::Release);
    }
}

/// An open file as a storage backend of redb.
#[derive(Debug)]
pub(in crate::store) struct StoreBackend {
    file: Arc<dyn FsFile>,
    sync_failed: Arc<AtomicBool>,
}

impl FsFile for StoreBackend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data().inspect_err(|_| self.sync_failed.store(true, Ordering::Release))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

/// Reads a file from start to end.
pub(in crate::store) struct FileReader {
    file: Arc<dyn FsFile>,
    at: u64,
}

impl FileReader {
    /// Opens the file at `path`.
    pub(in crate::store) fn open(fs: &FsHandle, path: &Path) -> io::Result<Self> {
        Ok(Self { file: fs.file_system().open(path)?, at: 0 })
    }
}

impl io::Read for FileReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.file.len()?.saturating_sub(self.at);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let (out, _) = out.split_at_mut(count);
        self.file.read(self.at, out)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}
