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

use crate::base::error::{Error, Result};
use crate::store::changes::file_copy::{NotSwapped, PAGE_CACHE, fill_copy, swap};
use crate::store::changes::value_log::Visitor;
use crate::store::disk::engine::catch_panic;
use crate::store::disk::file;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;

/// Rewrites the data file if possible.
///
/// If the disk has no room for a second file, the old file cannot be read completely, or it cannot be
/// replaced, the old file stays. The store can continue with it: the doubtful pages are pages that no commit
/// refers to, and redb rewrites them before a commit does.
///
/// # Errors
/// When it is uncertain whether the new file replaced the old one. Neither may accept writes then, because a
/// power cut could leave either.
pub fn rewrite(fs: &FsHandle, data: &Path) -> Result<()> {
    let draft = file::beside(data, file::REWRITING);
    let senseless = || Err(OpenError::damaged(data, &"redb panicked while reading it"));
    let prepared = catch_panic(|| prepare(fs, data, &draft)).unwrap_or_else(senseless);
    match prepared.map_err(NotSwapped::Kept).and_then(|()| swap(fs, &draft, data)) {
        Ok(()) => tracing::info!("the data file was rewritten after a failed sync"),
        Err(NotSwapped::Kept(cause)) => {
            let _ = file::remove(fs, &draft);
            tracing::warn!(%cause, "the data file could not be rewritten after a failed sync");
        }
        Err(NotSwapped::Unknown(cause)) => return Err(Error::internal(cause)),
    }
    Ok(())
}

/// Copies the state that the header of the file names to a new file beside it, and reads the copy back.
fn prepare(fs: &FsHandle, data: &Path, draft: &Path) -> Result<(), OpenError> {
    file::remove(fs, draft)?;
    file::inspect(fs, data, PAGE_CACHE, |source| {
        file::fill_draft(fs, draft, PAGE_CACHE, |copy| {
            // Damaged values too, so that none is mistaken for a missing one.
            let read = fill_copy(copy, draft, &Progress::silent(), |visit| each(source, visit))?;
            if each(copy, &mut |_, _, _| Ok(()))? == read {
                return Ok(());
            }
            let what = "reading it back did not return what was written";
            Err(OpenError::damaged(draft, &what))
        })
    })
}

/// Calls `visit` with every value, and returns a hash over all keys and values.
fn each(database: &Database, visit: &mut Visitor<'_>) -> Result<u64> {
    let snapshot = Snapshot::begin(database)?;
    let mut sum = Xxh3Default::new();
    for table in Table::ALL {
        sum.update(table.name().as_bytes());
        snapshot.each_sealed(*table, &mut |key, sealed| {
            for part in [key, sealed] {
                sum.update(&(part.len() as u64).to_be_bytes());
                sum.update(part);
            }
            visit(*table, key, Some(sealed))
        })?;
    }
    Ok(sum.digest())
}
