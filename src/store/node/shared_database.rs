//! Opening and founding a workspace in a shared database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::Database;

use crate::base::error::Error;
use crate::base::secret::{SeededRng, SigningSecret};
use crate::store::disk::engine::{begin, storage_error};
use crate::store::disk::file::{self, FileLock, Owner, follow_link};
use crate::store::disk::file_system::{FileSystem, FsHandle};
use crate::store::disk::open_error::OpenError;
use crate::store::disk::place::Place;
use crate::store::format::stored_position::put_position;
use crate::store::opening::fill_new;
use crate::store::origin::copy::{self, origin_error};
use crate::store::origin::copy_source::{CopySource, stored_rows};
use crate::store::origin::postgres::Postgres;
use crate::store::origin::{Fault, Origin, random_name};
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::position::Position;
use crate::store::write::WriteTx;
use crate::store::writer::Store;
use crate::store::writer::thread::OriginWriter;

impl Store {
    /// Opens the data at `place`.
    ///
    /// # Errors
    /// Those of [`open`](Self::open) for a data file. For a shared database, when it cannot be reached, holds no workspace,
    /// or refuses this node, or when the copy cannot be opened.
    #[doc(hidden)]
    pub fn open_at(
        file_system: Arc<dyn FileSystem>,
        place: &Place,
        cache: usize,
    ) -> Result<Self, OpenError> {
        match place {
            Place::File(path) => Self::open_on(file_system, path, cache),
            Place::Shared { copy, .. } => {
                let fs = FsHandle::new(file_system);
                let open = || open_copy(fs, copy, cache, CopySource::new(connect(place)?));
                Self::start_copy(on_thread(open)?)
            }
        }
    }

    /// Creates the data at `place`, fills it with `fill`, and opens it.
    ///
    /// # Errors
    /// Those of [`create`](Self::create) for a data file. For a shared database, when it cannot be reached, already holds a
    /// workspace, or refuses this node, or when a file exists at the path of the copy.
    pub(crate) fn create_at<T: Send>(
        file_system: Arc<dyn FileSystem>,
        place: &Place,
        cache: usize,
        rng: &mut SeededRng,
        fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError> + Send,
    ) -> Result<(Self, T), OpenError> {
        match place {
            Place::File(path) => Self::create_on(file_system, path, cache, rng, fill),
            Place::Shared { copy, .. } => {
                let fs = FsHandle::new(file_system);
                let create = || {
                    let origin = connect(place)?;
                    let filled = found_workspace(&fs, copy, cache, &*origin, rng, fill)?;
                    Ok((open_copy(fs, copy, cache, CopySource::new(origin))?, filled))
                };
                let (opened, filled) = on_thread(create)?;
                Ok((Self::start_copy(opened)?, filled))
            }
        }
    }

    /// Starts the store of an open copy. Must be called where the results of writes are sent from.
    pub(in crate::store) fn start_copy(opened: OpenedCopy) -> Result<Self, OpenError> {
        let OpenedCopy { fs, path, cache, lock, database, position, source } = opened;
        let origin = OriginWriter::new(Arc::new(source), position);
        Self::start(fs, &path, cache, lock, database, Some(origin))
    }
}

/// A copy that was opened, before it is served.
pub struct OpenedCopy {
    fs: FsHandle,
    path: PathBuf,
    cache: usize,
    lock: FileLock,
    database: Database,
    position: Position,
    source: CopySource,
}

/// Runs `work` on a thread of its own and waits for it: the methods of an origin block, and never run on a thread of an
/// async runtime.
pub(super) fn on_thread<T: Send>(
    work: impl FnOnce() -> Result<T, OpenError> + Send,
) -> Result<T, OpenError> {
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|_| Err(Error::internal("opening a shared database panicked").into()))
}

/// Opens the copy of an origin, and makes it first if necessary.
pub fn open_copy(
    fs: FsHandle,
    path: &Path,
    cache: usize,
    source: CopySource,
) -> Result<OpenedCopy, OpenError> {
    let path = follow_link(path)?;
    let lock = FileLock::acquire(&path)?;
    let open = || {
        file::remove_draft(&fs, &path)?;
        copy::open(&fs, &path, cache, &source)
    };
    match open() {
        Ok((database, position)) => {
            Ok(OpenedCopy { fs, path, cache, lock, database, position, source })
        }
        Err(error) => {
            lock.release();
            Err(error)
        }
    }
}

/// Returns the database at `place`. It is connected when it is first asked.
pub fn connect(place: &Place) -> Result<Arc<dyn Origin>, OpenError> {
    let Place::Shared { url, ca, node, .. } = place else {
        return Err(Error::internal("a data file is no shared database").into());
    };
    let refused = |fault: Fault| OpenError::DatabaseSetting {
        database: url.shown().to_owned(),
        cause: fault.to_string(),
    };
    Ok(Arc::new(Postgres::new(url, ca.as_deref(), node).map_err(refused)?))
}

/// Founds a workspace with what `fill` writes, and leaves its copy. The copy appears after the workspace.
pub fn found_workspace<T>(
    fs: &FsHandle,
    copy: &Path,
    cache: usize,
    origin: &dyn Origin,
    rng: &mut SeededRng,
    fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    if origin.head().map_err(|fault| origin_error(origin, fault))?.is_some() {
        return Err(OpenError::HasWorkspace(origin.shown().to_owned()));
    }
    file::require_absent(fs, copy)?;
    let lock = FileLock::acquire(copy)?;
    let founded = file::create(fs, copy, Owner::OfFolder, cache, |database| {
        let filled = fill_new(database, rng, fill)?;
        let snapshot = Snapshot::begin(database)?;
        let founded = origin.found_workspace(random_name(), &mut stored_rows(&snapshot));
        let position = founded.map_err(|fault| origin_error(origin, fault))?;
        let position =
            position.ok_or_else(|| OpenError::HasWorkspace(origin.shown().to_owned()))?;
        let transaction = begin(database)?;
        put_position(&transaction, position, origin.primary())?;
        transaction.commit().map_err(storage_error)?;
        Ok(filled)
    });
    lock.release();
    founded
}
