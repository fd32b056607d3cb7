//! `restore` and `import` for a shared database: the content of a data file becomes that of the database.

use std::path::Path;

use redb::Database;

use crate::base::error::Result;
use crate::store::disk::engine::{DEFAULT_CACHE, close};
use crate::store::disk::file::{self, Owner};
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::disk::place::{Destination, Place, ShownPath};
use crate::store::format::secrets::{SecretsOf, require_same_secret, stored_secret};
use crate::store::origin::copy::origin_error;
use crate::store::origin::copy_source::{CopySource, stored_rows, take_rows, take_turn};
use crate::store::origin::{Origin, random_name};
use crate::store::reads::progress::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::position::{OriginRow, Position};
use crate::store::whole::restore::{PreparedRestore, Restored};

use super::shared_database::{connect, on_thread};

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
            with_file(self.path(), |backup| {
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
    on_thread(|| {
        let origin = connect(place)?;
        match origin.head().map_err(|fault| origin_error(&*origin, fault))? {
            None => Ok(()),
            Some(_) => Err(OpenError::HasWorkspace(origin.shown().to_owned())),
        }
    })
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
        require_same_secret(&secret, &held, SecretsOf::Database)?;
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
