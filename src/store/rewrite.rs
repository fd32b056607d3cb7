//! Writing the data file anew, after a sync of it failed.
//!
//! When a sync fails, the operating system may let go of what it could not write and call it written: what is read
//! back then proves nothing of what is on disk. What the last acknowledged commit left does not depend on that. redb
//! never writes over what a commit refers to before the next one is on disk, and it syncs twice: first all that a
//! commit refers to, then the one sector that makes it valid. So the state that the header names was synced whole,
//! whichever it is: the last acknowledged one, or the one whose second sync failed. That is copied to a new file,
//! which has none of the doubtful pages, and takes the old one's place.

use std::path::{Path, PathBuf};

use redb::Database;
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::{Error, Result};

use super::disk::Drive;
use super::engine::{begin, begin_read, definition, storage_error};
use super::file::{self, beside};
use super::open_error::OpenError;
use super::panics::caught;
use super::schema::Table;
use super::snapshot::{InspectSealed, Snapshot};

/// The page cache of files that are walked once: 16 MiB.
const CACHE: usize = 16 * 1024 * 1024;

/// Where the new file grows.
pub(super) fn draft(data: &Path) -> PathBuf {
    beside(data, "rewriting")
}

/// Writes the file anew where that can be done. Where there is no room for a second file, this one cannot be read
/// to its end, or it cannot be replaced, it is left as it is and can be gone on with: what a failed sync makes doubtful
/// are pages that no commit refers to, and redb writes them again before one does.
///
/// # Errors
/// When the new file could not be put in the old one's place for certain. Then nobody knows which of the two a power
/// cut would leave, and neither may take writes.
pub(super) fn rewrite(drive: &Drive, data: &Path) -> Result<()> {
    let senseless = || Err(OpenError::damaged(data, &"redb cannot make sense of it"));
    let prepared = caught(|| prepare(drive, data)).unwrap_or_else(senseless);
    match prepared.and_then(|()| swap(drive, data)) {
        Ok(()) => {
            file::sync_folder(drive, data).map_err(Error::internal)?;
            tracing::info!("the data file was written anew after a failed sync");
        }
        Err(cause) => {
            let _ = file::remove(drive, &draft(data));
            tracing::warn!(%cause, "the data file could not be written anew after a failed sync");
        }
    }
    Ok(())
}

/// Copies the state that the file's header names to a new file beside it, and reads that back.
fn prepare(drive: &Drive, data: &Path) -> Result<(), OpenError> {
    let draft = draft(data);
    file::remove(drive, &draft)?;
    file::inspect(drive, data, CACHE, |shown| {
        file::fill_draft(drive, &draft, CACHE, |database| copy(shown, database, &draft))
    })
}

/// Where the new file still has its own name, nothing was done: so it is where the old one is a mount of its own.
fn swap(drive: &Drive, data: &Path) -> Result<(), OpenError> {
    let draft = draft(data);
    match drive.disk().rename(&draft, data) {
        Err(cause) if drive.disk().is_file(&draft).is_ok() => {
            Err(OpenError::io("replace", data)(cause))
        }
        _ => Ok(()),
    }
}

/// A value that is damaged stays what it is, so that it is still told from one that never was.
fn copy(from: &Database, to: &mut Database, draft: &Path) -> Result<(), OpenError> {
    let transaction = begin(to)?;
    let read = each(from, |table, put| {
        let mut opened = transaction.open_table(definition(table)).map_err(storage_error)?;
        put(&mut |key, sealed| {
            opened.insert(key, sealed).map_err(storage_error)?;
            Ok(())
        })
    })?;
    transaction.commit().map_err(storage_error)?;
    let written = each(to, |_, visit| visit(&mut |_, _| Ok(())))?;
    let sound = to.check_integrity().map_err(storage_error)?;
    if sound && written == read {
        return Ok(());
    }
    Err(OpenError::damaged(draft, &"it does not read back as it was written"))
}

/// Lets `walk` walk every table; answers what all values come to.
fn each(
    database: &Database,
    mut walk: impl FnMut(Table, &mut dyn FnMut(&mut InspectSealed<'_>) -> Result<()>) -> Result<()>,
) -> Result<u64> {
    let snapshot = Snapshot::new(begin_read(database)?, Box::new(|| ()));
    let mut sum = Xxh3Default::new();
    for table in Table::ALL {
        sum.update(table.name().as_bytes());
        walk(*table, &mut |visit| {
            snapshot.each_sealed(*table, &mut |key, sealed| {
                for part in [key, sealed] {
                    sum.update(&(part.len() as u64).to_be_bytes());
                    sum.update(part);
                }
                visit(key, sealed)
            })
        })?;
    }
    Ok(sum.digest())
}
