//! A workspace in a shared database: opening it, founding it, and replacing its content with that of a data file, for `restore` and
//! `import`.

use std::path::Path;
use std::sync::Arc;

use redb::Database;

use crate::base::error::{Error, Result};
use crate::base::secret::{SeededRng, SigningSecret};
use crate::store::disk::engine::{DEFAULT_CACHE, close};
use crate::store::disk::file::{self, FileLock, Owner, follow_link};
use crate::store::disk::file_system::{FileSystem, FsHandle};
use crate::store::disk::open_error::OpenError;
use crate::store::disk::place::{Destination, Place, ShownPath};
use crate::store::format::secrets::{require_same_secret, stored_secret};
use crate::store::format::stored_position::commit_position;
use crate::store::opening::fill_new;
use crate::store::origin::copy::{self, origin_error};
use crate::store::origin::copy_source::{CopySource, stored_rows, take_rows, take_turn};
use crate::store::origin::postgres::Postgres;
use crate::store::origin::{Fault, Origin, random_name};
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::position::{OriginRow, Position};
use crate::store::whole::restore::{PreparedRestore, Restored};
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
                let start = on_thread(open)?;
                start()
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
            Place::File(path) => Self::create(file_system, path, cache, rng, fill),
            Place::Shared { copy, .. } => {
                let fs = FsHandle::new(file_system);
                let create = || {
                    let origin = connect(place)?;
                    let filled = found_workspace(&fs, copy, cache, &*origin, rng, fill)?;
                    Ok((open_copy(fs, copy, cache, CopySource::new(origin))?, filled))
                };
                let (start, filled) = on_thread(create)?;
                Ok((start()?, filled))
            }
        }
    }
}

/// Starts the store of a copy that was opened. Call it where the results of writes are sent from.
pub type StartCopy = Box<dyn FnOnce() -> Result<Store, OpenError> + Send>;

/// Runs `work` on a thread of its own and waits for it: the methods of an origin block, and never run on a thread of an
/// async runtime.
fn on_thread<T: Send>(work: impl FnOnce() -> Result<T, OpenError> + Send) -> Result<T, OpenError> {
    let mut done = None;
    wait_for_thread(Box::new(|| done = Some(work())));
    done.unwrap_or_else(|| Err(Error::internal("opening a shared database panicked").into()))
}

fn wait_for_thread(work: Box<dyn FnOnce() + Send + '_>) {
    let _ = std::thread::scope(|scope| scope.spawn(work).join());
}

/// Opens the copy of an origin, and makes it first if necessary.
pub fn open_copy(
    fs: FsHandle,
    path: &Path,
    cache: usize,
    source: CopySource,
) -> Result<StartCopy, OpenError> {
    let path = follow_link(path)?;
    let lock = FileLock::acquire(&path)?;
    let cleared = file::remove_draft(&fs, &path);
    match cleared.and_then(|()| copy::open(&fs, &path, cache, &source)) {
        Ok((database, position)) => Ok(Box::new(move || {
            let origin = OriginWriter::new(Arc::new(source), position);
            Store::start(fs, &path, cache, lock, database, Some(origin))
        })),
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
    require_empty(origin)?;
    file::require_absent(fs, copy)?;
    let lock = FileLock::acquire(copy)?;
    let founded = file::create(fs, copy, Owner::OfFolder, cache, |database| {
        let filled = fill_new(database, rng, fill)?;
        let snapshot = Snapshot::begin(database)?;
        let founded = origin.found_workspace(random_name(), &mut stored_rows(&snapshot));
        let position = founded.map_err(|fault| origin_error(origin, fault))?;
        let position =
            position.ok_or_else(|| OpenError::HasWorkspace(origin.shown().to_owned()))?;
        commit_position(database, position, origin.primary())?;
        Ok(filled)
    });
    lock.release();
    founded
}

impl PreparedRestore {
    /// Makes the content of the backup that of the shared database at `place`. Founds a workspace there, or replaces the
    /// one that it holds; every node then copies it again. What is replaced is written to a data file beside the copy of
    /// this node first; its name ends in `replaced` and `stamp`.
    ///
    /// # Errors
    /// When the database cannot be reached or refuses this node, when it holds a workspace with other signing secrets, or
    /// when the operating system reports an error.
    pub fn upload(
        &self,
        place: &Place,
        stamp: &str,
        progress: &Progress,
    ) -> Result<Restored, OpenError> {
        let upload = || {
            let source = CopySource::new(connect(place)?);
            let to = Destination::Database(source.origin.shown().to_owned());
            with_file(&self.copy, |backup| {
                if found_workspace_with(&*source.origin, backup, progress)? {
                    return Ok(Restored { to, replaced: None });
                }
                let kept = file::beside(place.file(), &format!("replaced-{stamp}"));
                replace_with(&source, backup, progress, &kept)?;
                Ok(Restored { to, replaced: Some(ShownPath(kept)) })
            })
        };
        on_thread(upload)
    }
}

/// Founds a workspace in the shared database at `place` with the content of the data file at `from`.
///
/// # Errors
/// When the database cannot be reached, refuses this node, or already holds a workspace.
pub fn found_workspace_from(
    place: &Place,
    from: &Path,
    progress: &Progress,
) -> Result<(), OpenError> {
    on_thread(|| {
        let origin = connect(place)?;
        let is_founded =
            with_file(from, |database| found_workspace_with(&*origin, database, progress))?;
        is_founded.then_some(()).ok_or_else(|| OpenError::HasWorkspace(origin.shown().to_owned()))
    })
}

/// Fails if the shared database at `place` holds a workspace.
///
/// # Errors
/// As [`found_workspace_from`].
pub fn require_no_workspace(place: &Place) -> Result<(), OpenError> {
    on_thread(|| require_empty(&*connect(place)?))
}

fn require_empty(origin: &dyn Origin) -> Result<(), OpenError> {
    match origin.head().map_err(|fault| origin_error(origin, fault))? {
        None => Ok(()),
        Some(_) => Err(OpenError::HasWorkspace(origin.shown().to_owned())),
    }
}

/// Opens the data file at `path` for `work`.
fn with_file<T>(
    path: &Path,
    work: impl FnOnce(&Database) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let database = file::open(&FsHandle::os(), path, DEFAULT_CACHE)?;
    let done = work(&database)?;
    close(database)?;
    Ok(done)
}

/// Returns the rows of a state, and shows how many were sent.
fn uploaded(snapshot: &Snapshot, progress: &Progress) -> impl Iterator<Item = Result<OriginRow>> {
    let mut steps = progress.begin("uploading", snapshot.values().unwrap_or(0));
    stored_rows(snapshot).inspect(move |_| steps.advance())
}

/// Founds a workspace with the content of a data file. Returns false if there is one already.
fn found_workspace_with(
    origin: &dyn Origin,
    database: &Database,
    progress: &Progress,
) -> Result<bool, OpenError> {
    let snapshot = Snapshot::begin(database)?;
    let founded = origin.found_workspace(random_name(), &mut uploaded(&snapshot, progress));
    Ok(founded.map_err(|fault| origin_error(origin, fault))?.is_some())
}

/// Replaces the content of the origin with that of a backup. Leaves what the origin had in a data file at `kept`, on disk
/// before anything is replaced.
fn replace_with(
    source: &CopySource,
    backup: &Database,
    progress: &Progress,
    kept: &Path,
) -> Result<(), OpenError> {
    let (fs, origin) = (FsHandle::os(), &*source.origin);
    let snapshot = Snapshot::begin(backup)?;
    let secret = stored_secret(&snapshot)?;
    let position = keep(&fs, source, kept)?;
    let turn = with_file(kept, |database| {
        // Other nodes may have committed meanwhile, and cannot while the turn lasts.
        let taken = take_turn(database, source, position);
        let (_, turn) = taken.map_err(|fault| origin_error(origin, fault))?;
        let held = stored_secret(&Snapshot::begin(database)?)?;
        let hint = "restore it into an empty database";
        require_same_secret(&secret, &held, "database", hint)?;
        turn.extend().map_err(|fault| origin_error(origin, fault))?;
        Ok(turn)
    });
    let turn = match turn {
        Ok(turn) => turn,
        Err(error) => {
            file::remove(&fs, kept)?;
            return Err(error);
        }
    };
    let replaced = turn.replace(random_name(), &mut uploaded(&snapshot, progress));
    replaced.map(drop).map_err(|fault| origin_error(origin, fault))
}

/// Writes the content of the origin to a new data file. Returns the last commit in it.
pub fn keep(fs: &FsHandle, source: &CopySource, kept: &Path) -> Result<Position, OpenError> {
    file::create(fs, kept, Owner::OfFolder, DEFAULT_CACHE, |database| {
        let taken = take_rows(database, |take| source.all(take), |_, _| Ok(()));
        taken.map_err(|fault| origin_error(&*source.origin, fault))
    })
}
