//! Other ways to open a data file: creating it, and reading it without changing anything, neither the file nor what is beside it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::Database;

use crate::base::secret::{SeededRng, SigningSecret};
use crate::store::disk::file::{self, FileLock, Owner, folder_of, follow_link};
use crate::store::disk::file_system::{FileSystem, FsFile, FsHandle, OsFileSystem};
use crate::store::disk::open_error::OpenError;
use crate::store::disk::overlay::Overlay;
use crate::store::format::migrate::open_database;
use crate::store::write::{WriteTx, write_alone};
use crate::store::writer::Store;

impl Store {
    /// Creates a data file at `path`, fills it with `fill`, and opens it. The file appears complete or not at
    /// all.
    ///
    /// # Errors
    /// When a file already exists, another process is creating it, `fill` fails, or the operating system
    /// reports an error.
    pub(crate) fn create<T>(
        file_system: Arc<dyn FileSystem>,
        path: &Path,
        cache: usize,
        rng: &mut SeededRng,
        fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError>,
    ) -> Result<(Self, T), OpenError> {
        let fs = FsHandle::new(file_system);
        file::require_absent(&fs, path)?;
        let lock = FileLock::acquire_on(&fs, path)?;
        let fill = |database: &mut Database| fill_new(database, rng, fill);
        let filled = match file::create(&fs, path, Owner::OfFolder, cache, fill) {
            Ok(filled) => filled,
            Err(error) => {
                lock.release();
                return Err(error);
            }
        };
        let database = open_database(&fs, path, cache)?;
        Ok((Self::start(fs, path, cache, lock, database, None)?, filled))
    }

    /// Opens the data file at `path` for reading. What redb writes to it stays in memory, also the migration of an older file.
    /// The file may be on a read-only disk.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_to_read(path: &Path, cache: usize) -> Result<Self, OpenError> {
        let path = &follow_link(path)?;
        let fs = FsHandle::new(Arc::new(ReadOnly { data: path.clone() }));
        let lock = FileLock::acquire_shared(&fs, path)?;
        let database = open_database(&fs, path, cache)?;
        Self::start(fs, path, cache, lock, database, None)
    }
}

/// Fills an empty file with a signing secret and with what `fill` writes.
pub fn fill_new<T>(
    database: &Database,
    rng: &mut SeededRng,
    fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    write_alone(database, |tx| {
        tx.begin_file()?;
        let secret = SigningSecret::new(rng);
        tx.put_secret(&secret);
        fill(tx, &secret)
    })
}

/// The files of the operating system, of which the data file does not change. A backup is written to another file.
#[derive(Debug)]
struct ReadOnly {
    data: PathBuf,
}

impl ReadOnly {
    fn require_other(&self, path: &Path) -> io::Result<()> {
        if path == self.data { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }
}

impl FileSystem for ReadOnly {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        if path == self.data {
            return Ok(Arc::new(Overlay::new(self.open_to_read(path)?)?));
        }
        OsFileSystem.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.require_other(from).and_then(|()| self.require_other(to))?;
        OsFileSystem.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.require_other(from)?;
        OsFileSystem.rename_new(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.require_other(path)?;
        OsFileSystem.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let is_own = folder == folder_of(&self.data);
        match OsFileSystem.sync_folder(folder) {
            // A file system that is always read-only has nothing to sync.
            Err(cause) if cause.kind() == io::ErrorKind::InvalidInput => Ok(()),
            // A user that may not list the folder of the data file changes nothing there.
            Err(cause) if is_own && cause.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        }
    }
}
