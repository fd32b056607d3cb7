//! The files of the operating system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use redb::backends::FileBackend;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{FileIdentity, FileSystem, FreeBytes, FsFile};

/// The files of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct OsFileSystem;

impl OsFileSystem {
    /// The file system that the service uses.
    pub fn shared() -> Arc<dyn FileSystem> {
        Arc::new(Self)
    }
}

/// Opens the regular file at `path`. Does not follow a symbolic link, and does not block if `path` is a pipe.
///
/// # Errors
/// The error of the operating system; an error if `path` is a symbolic link or not a regular file.
pub fn open_no_follow(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
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

impl FileSystem for OsFileSystem {
    fn is_file(&self, path: &Path) -> io::Result<bool> {
        fs::metadata(path).map(|found| found.is_file())
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        wrap_file(open_no_follow(OpenOptions::new().read(true).write(true), path)?)
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        let file = open_no_follow(OpenOptions::new().read(true), path)?;
        match file.try_lock_shared() {
            // A file system without locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Arc::new(ReadFile(file))),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        let mut options = OpenOptions::new();
        wrap_file(options.read(true).write(true).create_new(true).mode(0o600).open(path)?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

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

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn identity(&self, path: &Path) -> io::Result<Option<FileIdentity>> {
        let found = fs::symlink_metadata(path)?;
        Ok(Some(FileIdentity { device: found.dev(), inode: found.ino() }))
    }

    fn space(&self, folder: &Path) -> io::Result<Option<FreeBytes>> {
        let found = rustix::fs::statvfs(folder)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Some(FreeBytes { free: bytes(found.f_bavail), total: bytes(found.f_blocks) }))
    }
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
