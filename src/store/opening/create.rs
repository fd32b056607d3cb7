//! Creating a data file.

use std::path::Path;
use std::sync::Arc;

use redb::Database;

use crate::error::Error;
use crate::secret::{SeededRng, SigningSecret};
use crate::store::disk::engine::{begin, storage_error};
use crate::store::disk::file::{self, FileLock, Owner};
use crate::store::disk::file_system::{FileSystem, FsHandle, OsFileSystem};
use crate::store::disk::open_error::OpenError;
use crate::store::format::migrate::open_database;
use crate::store::write::WriteTx;
use crate::store::writer::Store;

impl Store {
    /// Creates a data file at `path`, fills it with `fill`, and opens it. The file appears complete or not at
    /// all.
    ///
    /// # Errors
    /// When a file already exists, another process is creating it, `fill` fails, or the operating system
    /// reports an error.
    #[doc(hidden)]
    pub fn create<T>(
        path: &Path,
        cache: usize,
        rng: &mut SeededRng,
        fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError>,
    ) -> Result<(Self, T), OpenError> {
        Self::create_on(OsFileSystem::shared(), path, cache, rng, fill)
    }

    /// Creates a data file as [`create`](Self::create) does, on another disk.
    pub(crate) fn create_on<T>(
        file_system: Arc<dyn FileSystem>,
        path: &Path,
        cache: usize,
        rng: &mut SeededRng,
        fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError>,
    ) -> Result<(Self, T), OpenError> {
        let fs = FsHandle::new(file_system);
        file::require_absent(&fs, path)?;
        let lock = FileLock::take(path)?;
        let mut filled = None;
        let created = file::create(&fs, (path, Owner::OfFolder), cache, |database| {
            filled = Some(fill_new(database, rng, fill)?);
            Ok(())
        });
        if let Err(error) = created {
            lock.release();
            return Err(error);
        }
        let database = open_database(&fs, path, cache)?;
        let store = Self::start(fs, path, cache, lock, (database, None))?;
        let filled = filled.ok_or_else(|| Error::internal("a new file was not filled"))?;
        Ok((store, filled))
    }
}

/// Fills an empty file with a signing secret and with what `fill` writes.
pub(in crate::store) fn fill_new<T>(
    database: &Database,
    rng: &mut SeededRng,
    fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let transaction = begin(database)?;
    let mut tx = WriteTx::new(&transaction);
    tx.begin_file()?;
    let secret = SigningSecret::new(rng);
    tx.put_secret(&secret);
    let filled = fill(&mut tx, &secret)?;
    tx.finish()?;
    transaction.commit().map_err(storage_error)?;
    Ok(filled)
}
