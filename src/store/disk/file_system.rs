//! The file system that holds the data file.
//!
//! The service uses [`OsFileSystem`]. A test can pass another [`FileSystem`] in [`Config`](crate::Config), to decide
//! what a power cut loses, which access fails, and which bit is flipped.

mod os;

use std::fmt::Debug;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::BackendError;

pub use os::OsFileSystem;
pub(in crate::store) use os::open_no_follow;

/// A file system. A change of a folder is durable once the folder is synced. A power cut before that may lose
/// any of the changes, each independently.
pub trait FileSystem: Debug + Send + Sync + 'static {
    /// Whether `path` names a regular file.
    ///
    /// # Errors
    /// `NotFound` if nothing exists at `path`.
    fn is_file(&self, path: &Path) -> io::Result<bool>;

    /// Opens the file at `path` for reading and writing. Does not follow a symbolic link.
    ///
    /// # Errors
    /// The error of the operating system; an error if `path` is a symbolic link.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn FsFile>>;

    /// Opens the file at `path` for reading alone. Does not follow a symbolic link.
    ///
    /// # Errors
    /// `WouldBlock` if a process has the file open for writing; otherwise as [`open`](Self::open).
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        self.open(path)
    }

    /// Creates an empty file at `path` that only its owner may read.
    ///
    /// # Errors
    /// `AlreadyExists` if something exists at `path`.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn FsFile>>;

    /// Adds the name `to` to the file at `from`.
    ///
    /// # Errors
    /// `AlreadyExists` if something exists at `to`.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames the file at `from` to `to`, and replaces a file that has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames the file at `from` to `to`, for file systems in which a file has one name only.
    ///
    /// # Errors
    /// `AlreadyExists` if something exists at `to`.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.link(from, to)?;
        self.remove(from)
    }

    /// Removes a name.
    ///
    /// # Errors
    /// `NotFound` if nothing exists at `path`.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Returns the identity of the file at `path`, or `None` if it is unknown.
    ///
    /// # Errors
    /// `NotFound` if nothing exists at `path`.
    fn identity(&self, path: &Path) -> io::Result<Option<FileIdentity>> {
        let _ = path;
        Ok(None)
    }

    /// Returns the space of the file system that holds `folder`, or `None` if it is unknown.
    fn space(&self, folder: &Path) -> io::Result<Option<FreeBytes>> {
        let _ = folder;
        Ok(None)
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
