//! Rewrites the data file after a sync of it failed.
//!
//! After a failed sync the operating system may drop the data that it could not write and treat it as
//! written. Reading the file then proves nothing about what is on disk.
//!
//! The state of the last acknowledged commit does not depend on that data. redb never overwrites what a
//! commit refers to before the next commit is on disk. It syncs twice: first everything that a commit refers
//! to, then the one sector that makes the commit valid. So the state that the header names was synced
//! completely, whether it is the last acknowledged commit or the commit whose second sync failed. [`rewrite`]
//! copies that state to a new file, which contains no doubtful pages, and replaces the old file with it.

use std::path::Path;

use redb::Database;
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::{Error, Result};

use super::engine::{begin, storage_error};
use super::file;
use super::file_system::FsHandle;
use super::fill::{PAGE_CACHE, fill};
use super::open_error::OpenError;
use super::panics::catch_panic;
use super::schema::Table;
use super::snapshot::{InspectSealed, Snapshot};

/// Rewrites the data file if possible.
///
/// If the disk has no room for a second file, the old file cannot be read completely, or it cannot be
/// replaced, the old file stays. The store can continue with it: the doubtful pages are pages that no commit
/// refers to, and redb rewrites them before a commit does.
///
/// # Errors
/// When it is uncertain whether the new file replaced the old one. Neither may accept writes then, because a
/// power cut could leave either.
pub(super) fn rewrite(fs: &FsHandle, data: &Path) -> Result<()> {
    let senseless = || Err(OpenError::damaged(data, &"redb panicked while reading it"));
    let prepared = catch_panic(|| prepare(fs, data)).unwrap_or_else(senseless);
    match prepared.and_then(|()| swap(fs, data)) {
        Ok(()) => {
            file::sync_folder(fs, data).map_err(Error::internal)?;
            tracing::info!("the data file was rewritten after a failed sync");
        }
        Err(cause) => {
            let _ = file::remove(fs, &file::rewrite_draft_path(data));
            tracing::warn!(%cause, "the data file could not be rewritten after a failed sync");
        }
    }
    Ok(())
}

/// Copies the state that the header of the file names to a new file beside it, and reads the copy back.
fn prepare(fs: &FsHandle, data: &Path) -> Result<(), OpenError> {
    let draft = file::rewrite_draft_path(data);
    file::remove(fs, &draft)?;
    file::inspect(fs, data, PAGE_CACHE, |source| {
        file::fill_draft(fs, &draft, PAGE_CACHE, |database| copy(source, database, &draft))
    })
}

/// Replaces the old file. If the rename fails and the new file still has its own name, nothing was changed;
/// for example, when the data file is a mount point of its own.
fn swap(fs: &FsHandle, data: &Path) -> Result<(), OpenError> {
    let draft = file::rewrite_draft_path(data);
    match fs.file_system().rename(&draft, data) {
        Err(cause) if fs.file_system().is_file(&draft).is_ok() => {
            Err(file::not_replaced(data)(cause))
        }
        _ => Ok(()),
    }
}

/// Copies sealed values unchanged. A damaged value stays damaged, so that it is not mistaken for a missing
/// one.
fn copy(from: &Database, to: &mut Database, draft: &Path) -> Result<(), OpenError> {
    let read = fill(begin(to)?, |take| {
        each(from, |table, put| put(&mut |key, sealed| take(table, key, Some(sealed))))
    })?;
    let written = each(to, |_, visit| visit(&mut |_, _| Ok(())))?;
    let sound = to.check_integrity().map_err(storage_error)?;
    if sound && written == read {
        return Ok(());
    }
    Err(OpenError::damaged(draft, &"reading it back did not return what was written"))
}

/// Calls `walk` for every table. Returns a hash over all keys and values.
fn each(
    database: &Database,
    mut walk: impl FnMut(Table, &mut dyn FnMut(&mut InspectSealed<'_>) -> Result<()>) -> Result<()>,
) -> Result<u64> {
    let snapshot = Snapshot::begin(database)?;
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
