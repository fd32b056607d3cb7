//! `restore`: replaces the data file with a backup, also while a server has it open.

use std::path::{Path, PathBuf};

use redb::Database;
use serde::Serialize;

use crate::base::error::{Error, Result};
use crate::base::secret::SigningSecret;
use crate::store::disk::engine::{DEFAULT_CACHE, begin, close, definition, storage_error};
use crate::store::disk::file::{self, FileLock, beside, follow_link};
use crate::store::disk::file_names::adopt;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::disk::place::{Destination, ShownPath};
use crate::store::format::migrate::{is_of_this_release, open_database};
use crate::store::format::secrets::{require_same_secret, stored_secret};
use crate::store::format::stored_position::position_of;
use crate::store::kinds::record_registry::RecordRegistry;
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;
use crate::store::write::cell::{Cell, stored_cell};
use crate::store::writer::Store;

use super::backup::require_valid;

/// A completed restore.
#[derive(Debug, Clone, Serialize)]
pub struct Restored {
    /// Where the data is.
    #[serde(flatten)]
    pub to: Destination,
    /// The path of the file that the backup replaced, or of a data file with what it replaced in a database.
    pub replaced: Option<ShownPath>,
}

/// A checked copy of a backup beside the data file, ready to replace it. Dropping this removes the copy.
pub struct PreparedRestore {
    data: PathBuf,
    pub(in crate::store) copy: PathBuf,
    lock: Option<FileLock>,
}

impl Drop for PreparedRestore {
    fn drop(&mut self) {
        let _ = file::remove(&FsHandle::os(), &self.copy);
        if let Some(lock) = self.lock.take() {
            lock.release();
        }
    }
}

/// The path of the copy that will replace the file at `data`.
fn copy_beside(data: &Path) -> PathBuf {
    beside(data, "restoring")
}

impl PreparedRestore {
    /// Copies the backup at `from`, migrates the copy to the current format, and checks it.
    ///
    /// # Errors
    /// When the backup is in use, not a Steward data file or inconsistent, when another restore is running,
    /// or when the operating system reports an error.
    pub fn new(
        data: &Path,
        from: &Path,
        registry: &RecordRegistry,
        progress: &Progress,
    ) -> Result<Self, OpenError> {
        let fs = FsHandle::os();
        let from = &follow_link(from)?;
        let source = FileLock::acquire_shared(&fs, from).map_err(OpenError::of_backup)?;
        let copy = copy_beside(data);
        let lock = Some(FileLock::acquire(&copy)?);
        let prepared = Self { data: data.to_owned(), copy, lock };
        progress.begin("copying", 0);
        let copied =
            file::remove(&fs, &prepared.copy).and_then(|()| file::copy(from, &prepared.copy));
        drop(source);
        copied?;
        let opened = open_database(&fs, &prepared.copy, DEFAULT_CACHE);
        let mut database = opened.map_err(|error| error.with_path(from).of_backup())?;
        clear_transient(&database)?;
        require_valid(from, &mut database, registry, progress)?;
        close(database)?;
        Ok(prepared)
    }

    /// Replaces a data file that no process has open. The old file stays beside it; its name ends in
    /// `replaced` and `stamp`.
    ///
    /// # Errors
    /// When the data file is in use or the copy of a shared database, or the operating system reports an error.
    pub fn swap(&self, stamp: &str) -> Result<Restored, OpenError> {
        let lock = FileLock::acquire(&self.data)?;
        let fs = FsHandle::os();
        let swapped = require_no_copy(&fs, &self.data)
            .and_then(|()| file::remove_draft(&fs, &self.data))
            .and_then(|()| swap_files(&fs, &self.data, stamp));
        if swapped.is_err() {
            lock.release();
        }
        swapped
    }
}

/// Deletes the records that a backup leaves out. This file may be a plain copy of a data file, which has them.
fn clear_transient(database: &Database) -> Result<()> {
    let transaction = begin(database)?;
    for table in Table::TRANSIENT {
        transaction.delete_table(definition(*table)).map_err(storage_error)?;
        transaction.open_table(definition(*table)).map_err(storage_error)?;
    }
    transaction.commit().map_err(storage_error)
}

/// Fails if the file at `data` is the copy of a shared database: its node would no longer open it. A file that cannot be read
/// can be replaced.
fn require_no_copy(fs: &FsHandle, data: &Path) -> Result<(), OpenError> {
    let position = file::inspect(fs, data, DEFAULT_CACHE, |database| Ok(position_of(database)?));
    match position {
        Ok(Some(_)) => Err(OpenError::IsCopy(data.to_owned())),
        _ => Ok(()),
    }
}

fn swap_files(fs: &FsHandle, data: &Path, stamp: &str) -> Result<Restored, OpenError> {
    adopt(&copy_beside(data), data)?;
    let replaced = file::replace(fs, data, &copy_beside(data), &format!("replaced-{stamp}"))?;
    let to = Destination::File(ShownPath(data.to_owned()));
    Ok(Restored { to, replaced: replaced.map(ShownPath) })
}

impl Store {
    /// Replaces the open data file with the [`PreparedRestore`] copy. Requests fail with 503 for a moment, until the
    /// copy is open.
    ///
    /// # Errors
    /// 400 when the copy does not exist, is of another cell or has different signing secrets, because this process
    /// could not verify the links and keys in it.
    #[doc(hidden)]
    pub async fn restore(&self, stamp: String) -> Result<Restored> {
        if self.is_shared() {
            let text = "the data file is a copy of a shared database; restore the database";
            return Err(Error::invalid("not_restored", text));
        }
        let (fs, data) = (self.fs.clone(), self.path().to_owned());
        self.with_exclusive_file(move |database| {
            let held = || Ok(workspace_of(&Snapshot::begin(&database)?)?);
            let swapped = held().and_then(|held| {
                require_same(&fs, &data, &held)?;
                close(database)?;
                swap_files(&fs, &data, &stamp)
            });
            swapped.map_err(|error| Error::invalid("not_restored", error.to_string()))
        })
        .await
    }
}

/// Returns what identifies the workspace: several cells may have the same secret.
fn workspace_of(snapshot: &Snapshot) -> Result<(SigningSecret, Cell)> {
    Ok((stored_secret(snapshot)?, stored_cell(snapshot)?))
}

/// Fails unless the copy beside `data` is of this workspace, and a process of this release prepared it.
fn require_same(
    fs: &FsHandle,
    data: &Path,
    (secret, cell): &(SigningSecret, Cell),
) -> Result<(), OpenError> {
    let copy = copy_beside(data);
    let (found, of) = file::inspect(fs, &copy, DEFAULT_CACHE, |database| {
        if !is_of_this_release(database, &copy)? {
            let text = "the command is a different release than the server; use the same release";
            return Err(Error::invalid("another_release", text).into());
        }
        Ok(workspace_of(&Snapshot::begin(database)?)?)
    })?;
    require_same_secret(&found, secret, "server", "stop the server to restore it")?;
    if of == *cell {
        return Ok(());
    }
    let text =
        format!("the backup is of cell {of}, not cell {cell}; stop the server to restore it");
    Err(Error::invalid("another_workspace", text).into())
}
