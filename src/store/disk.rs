//! What the data file lies on: how its bytes and its name are reached.
//!
//! The service uses [`Files`]. A test can put another [`Disk`] in its place ([`Config`](crate::Config) holds it)
//! and so decide what a power cut leaves, which access fails, and which bit is flipped.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Where files lie. What is done to a folder is on disk once the folder is synced, and until then may be lost to
/// a power cut, each by itself.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Whether `path` names a regular file.
    ///
    /// # Errors
    /// `NotFound` where it names nothing.
    fn is_file(&self, path: &Path) -> io::Result<bool>;

    /// Opens the file at `path` to read and write it. A symbolic link is not followed.
    ///
    /// # Errors
    /// What the operating system says; an error if `path` is a symbolic link.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes an empty file, which its owner alone may read, at `path`, where nothing is.
    ///
    /// # Errors
    /// `AlreadyExists` where something is.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives the file at `from` a second name, `to`, which nothing has.
    ///
    /// # Errors
    /// `AlreadyExists` where something has it.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives the file at `from` the name `to` instead, which another loses by that.
    ///
    /// # Errors
    /// What the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Takes away a name.
    ///
    /// # Errors
    /// `NotFound` where nothing has it.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Has on disk which names there are in a folder, and of what.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// How much space the file system of a folder has; none where nobody knows.
    ///
    /// # Errors
    /// What the operating system says.
    fn space(&self, folder: &Path) -> io::Result<Option<Space>> {
        let _ = folder;
        Ok(None)
    }
}

/// The space of a file system.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    /// How many bytes are free for this process.
    pub free: u64,
    /// How many bytes it has.
    pub total: u64,
}

/// An open file. What is written is on disk once it is synced, and until then may be lost to a power cut, each
/// sector by itself.
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// How many bytes it has.
    ///
    /// # Errors
    /// What the operating system says.
    fn size(&self) -> io::Result<u64>;

    /// Fills `out` with what lies at `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` where the file ends before.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// What the operating system says.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Cuts it off, or lets it grow by zeros.
    ///
    /// # Errors
    /// What the operating system says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Has on disk all that was written.
    ///
    /// # Errors
    /// What the operating system says. Nobody knows then what is on disk of what was written since the last
    /// success, and reading tells nothing of it.
    fn sync(&self) -> io::Result<()>;

    /// Lets go of what [`try_lock`](Self::try_lock) took.
    ///
    /// # Errors
    /// What the operating system says.
    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    /// Keeps others from the bytes of a range; whether nobody else holds any of them.
    ///
    /// # Errors
    /// `Unsupported` where there is no such thing.
    fn try_lock(&self, start: Bound<u64>, end: Bound<u64>) -> io::Result<bool> {
        let _ = (start, end);
        Ok(true)
    }

    /// Lets others at the bytes of a range again.
    ///
    /// # Errors
    /// What the operating system says.
    fn unlock(&self, start: Bound<u64>, end: Bound<u64>) -> io::Result<()> {
        let _ = (start, end);
        Ok(())
    }
}

/// The operating system's files.
#[derive(Debug, Clone, Copy)]
pub struct Files;

/// An open file of the operating system's.
#[derive(Debug)]
struct OpenFile(FileBackend);

impl Files {
    /// What the service runs on.
    pub fn shared() -> Arc<dyn Disk> {
        Arc::new(Self)
    }
}

/// Opens the regular file at `path`, and nothing that a symbolic link in its place leads to. A pipe in its place does
/// not hold the process up.
///
/// # Errors
/// What the operating system says; an error if `path` is a symbolic link or no regular file.
pub(super) fn open_itself(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => io::Error::other("it is a symbolic link, which is not followed here"),
        _ => error,
    })?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is no regular file"))
}

fn opened(file: File) -> io::Result<Arc<dyn DiskFile>> {
    Ok(Arc::new(OpenFile(FileBackend::new(file).map_err(io::Error::other)?)))
}

impl Disk for Files {
    fn is_file(&self, path: &Path) -> io::Result<bool> {
        fs::metadata(path).map(|found| found.is_file())
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        opened(open_itself(OpenOptions::new().read(true).write(true), path)?)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        opened(options.read(true).write(true).create_new(true).mode(0o600).open(path)?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn space(&self, folder: &Path) -> io::Result<Option<Space>> {
        let found = rustix::fs::statvfs(folder)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Some(Space { free: bytes(found.f_bavail), total: bytes(found.f_blocks) }))
    }
}

impl DiskFile for OpenFile {
    fn size(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }

    fn try_lock(&self, start: Bound<u64>, end: Bound<u64>) -> io::Result<bool> {
        self.0.try_lock_range(start, end).map_err(io::Error::from)
    }

    fn unlock(&self, start: Bound<u64>, end: Bound<u64>) -> io::Result<()> {
        self.0.unlock_range(start, end).map_err(io::Error::from)
    }
}

/// The disk of one store, and whether it broke its word.
#[derive(Debug, Clone)]
pub(super) struct Drive {
    disk: Arc<dyn Disk>,
    sync_failed: Arc<AtomicBool>,
}

impl Drive {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, sync_failed: Arc::default() }
    }

    /// The same disk for another file, whose failures are its own.
    pub(super) fn apart(&self) -> Self {
        Self::new(Arc::clone(&self.disk))
    }

    /// The operating system's files.
    pub(super) fn files() -> Self {
        Self::new(Files::shared())
    }

    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// A file of this disk, for redb.
    pub(super) fn medium(&self, file: Arc<dyn DiskFile>) -> Medium {
        Medium { file, sync_failed: Arc::clone(&self.sync_failed) }
    }

    /// Whether a sync failed since the file was last [`trusted`](Self::trust).
    pub(super) fn distrusted(&self) -> bool {
        self.sync_failed.load(Ordering::Acquire)
    }

    /// All that counts was read back, written anew and synced.
    pub(super) fn trust(&self) {
        self.sync_failed.store(false, Ordering::Release);
    }
}

/// An open file, as redb wants it.
#[derive(Debug)]
pub(super) struct Medium {
    file: Arc<dyn DiskFile>,
    sync_failed: Arc<AtomicBool>,
}

impl StorageBackend for Medium {
    fn len(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync().inspect_err(|_| self.sync_failed.store(true, Ordering::Release))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(self.file.try_lock(start, end)?)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        Ok(self.file.unlock(start, end)?)
    }
}

/// Reads a file from its beginning to its end.
pub(super) struct Reading {
    file: Arc<dyn DiskFile>,
    at: u64,
}

impl Reading {
    /// Opens the file at `path` to read it once.
    pub(super) fn of(drive: &Drive, path: &Path) -> io::Result<Self> {
        Ok(Self { file: drive.disk().open(path)?, at: 0 })
    }
}

impl io::Read for Reading {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.file.size()?.saturating_sub(self.at);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let (out, _) = out.split_at_mut(count);
        self.file.read(self.at, out)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}
