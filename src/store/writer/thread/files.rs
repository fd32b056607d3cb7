//! Passing the file on, replacing it, and opening it again after a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use redb::Database;
use xxhash_rust::xxh3::Xxh3Default;

use crate::base::error::{Error, Result};
use crate::store::changes::file_copy::{NotSwapped, PAGE_CACHE, fill_copy, swap};
use crate::store::changes::value_log::Visitor;
use crate::store::disk::engine::{RETRY_AFTER, catch_panic, closed};
use crate::store::disk::file;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::origin::copy;
use crate::store::origin::copy_source::CopySource;
use crate::store::origin::trouble::Trouble;
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;

use super::super::task::{ExclusiveWork, NextWrite, Replace, Replacement, Task};
use super::Writer;

/// The first delay after a failure of the file. While the file cannot be opened, the delay doubles with each attempt, up
/// to [`MAX_REOPEN_DELAY`].
const MIN_REOPEN_DELAY: Duration = Duration::from_millis(50);
/// The maximum delay between two attempts to open the file again.
const MAX_REOPEN_DELAY: Duration = Duration::from_secs(5);

impl Writer {
    /// Passes the database to `work`, then opens the file again. Returns `None` if the store is closed before that.
    pub(super) fn with_exclusive_file(
        &mut self,
        database: Database,
        work: ExclusiveWork,
    ) -> Option<Database> {
        if let Err(cause) = self.sync_copy(&database) {
            return self.reopen(database, false, &cause);
        }
        // If `work` panics, its reply channel is dropped, and the caller gets 503.
        let tell = self.shared.stats.run_busy(|| {
            self.shared.close();
            catch_unwind(AssertUnwindSafe(|| work(database))).ok()
        });
        let opened = self.open_again(Duration::ZERO);
        if let Some(tell) = tell {
            tell();
        }
        opened
    }

    /// Replaces the file with the copy that `prepare` returns. Reads continue: those of older snapshots in the replaced file.
    /// Returns `None` if the store is closed before a file is open.
    pub(super) fn replace(&mut self, database: Database, prepare: Replace) -> Option<Database> {
        if let Err(cause) = self.sync_copy(&database) {
            return self.reopen(database, false, &cause);
        }
        let prepared = catch_unwind(AssertUnwindSafe(|| prepare(&database, self.cache)));
        match prepared.unwrap_or_else(|_| Replacement::Unknown(Error::internal("redb panicked"))) {
            Replacement::Kept(tell) => {
                tell();
                Some(database)
            }
            Replacement::Unknown(cause) => self.reopen(database, false, &cause),
            Replacement::Replaced(copy, tell) => {
                let replaced = std::mem::take(&mut self.file);
                self.shared.place.note(&self.fs, &self.path);
                if let Err(cause) = self.publish(&copy) {
                    return self.reopen(copy, false, &cause);
                }
                replaced.close_after_snapshots(database);
                tell();
                Some(copy)
            }
        }
    }

    /// Closes the file and opens it again, with as many attempts as needed. Reads and writes fail until then: after an
    /// I/O error the handle refuses all writes, and its state in memory is unreliable. After a failed write the file is
    /// opened at once, so that reads continue; writes fail for [`MIN_REOPEN_DELAY`] more. Returns `None` if the store is
    /// closed before the file is open again.
    pub(super) fn reopen(
        &mut self,
        database: Database,
        wrote: bool,
        cause: &Error,
    ) -> Option<Database> {
        if !self.note_trouble(cause) {
            tracing::error!(%cause, "the data file failed; opening it again");
        }
        self.shared.close();
        drop(database);
        let (first, rest) = if wrote {
            (Duration::ZERO, MIN_REOPEN_DELAY)
        } else {
            (MIN_REOPEN_DELAY, Duration::ZERO)
        };
        self.refuse_for(first)?;
        self.open_again(rest)
    }

    /// Opens the file, with as many attempts as needed. Reads continue at once, writes after `rest`.
    fn open_again(&mut self, rest: Duration) -> Option<Database> {
        let mut wait = MIN_REOPEN_DELAY;
        loop {
            match self.try_open() {
                Ok(database) => {
                    tracing::info!("the data file is open again");
                    self.refuse_for(rest)?;
                    self.shared.ready.store(true, Ordering::Release);
                    self.answer_unshown();
                    return Some(database);
                }
                Err(cause) => self.note_closed(&cause),
            }
            wait = (wait * 2).min(MAX_REOPEN_DELAY);
            self.refuse_for(wait)?;
        }
    }

    /// Reports why the file cannot be opened. Writes that an origin has and the copy could not show are answered: they may wait
    /// for long.
    fn note_closed(&mut self, cause: &Error) {
        if !self.note_trouble(cause) {
            tracing::error!(%cause, "the data file cannot be opened yet");
        }
        let unshown = self.origin.as_mut().and_then(|origin| origin.unshown.take());
        for write in unshown.into_iter().flat_map(|unshown| unshown.writes) {
            write.answer(Err(Error::outcome_unknown(RETRY_AFTER, cause)));
        }
    }

    /// Records why the copy of an origin is closed. Returns false for a data file.
    fn note_trouble(&self, cause: &Error) -> bool {
        let Some(origin) = &self.origin else { return false };
        let (database, seq) = (&*origin.source.origin, origin.position.seq);
        origin.source.state.troubles.note(Trouble::Copy, database, seq, &cause.to_string());
        true
    }

    fn try_open(&mut self) -> Result<Database> {
        if let Some(source) = self.origin.as_ref().map(|origin| Arc::clone(&origin.source)) {
            return self.try_open_copy(&source);
        }
        if self.fs.has_failed_sync() {
            self.shared.stats.run_busy(|| rewrite(&self.fs, &self.path))?;
        }
        let database = file::open(&self.fs, &self.path, self.cache).map_err(Error::internal)?;
        self.shared.place.note(&self.fs, &self.path);
        // It may be another file: `restore` replaces it.
        self.shared.access_version.fetch_add(1, Ordering::Relaxed);
        self.publish(&database)?;
        self.fs.clear_failed_sync();
        Ok(database)
    }

    /// Opens the copy, and takes what it lacks. After a failed sync, what is on disk is uncertain, and the copy is made again.
    fn try_open_copy(&mut self, source: &CopySource) -> Result<Database> {
        if self.fs.has_failed_sync() {
            copy::set_aside(&self.fs, &self.path, "damaged").map_err(Error::internal)?;
            self.fs.clear_failed_sync();
        }
        let open = || copy::open(&self.fs, &self.path, self.cache, source);
        let opened = self.shared.stats.run_busy(open);
        let (database, position) = opened.map_err(Error::internal)?;
        self.start_at(position);
        self.shared.access_version.fetch_add(1, Ordering::Relaxed);
        self.shared.watchers.call(None, || super::snapshot(&database, &self.sender))?;
        self.publish(&database)?;
        Ok(database)
    }

    /// Refuses all tasks for the duration `wait`. Returns `None` if the store is closed meanwhile.
    fn refuse_for(&mut self, wait: Duration) -> Option<()> {
        let until = Instant::now() + wait;
        loop {
            if let Some(task) = self.queue.try_recv() {
                refuse(task)?;
                continue;
            }
            if self.queue.is_closed() {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(());
            }
            std::thread::sleep(left.min(Duration::from_millis(10)));
        }
    }
}

/// Refuses a task while the file is closed. Returns `None` if the task closes the store.
fn refuse(task: Task) -> Option<()> {
    match task {
        Task::Write(NextWrite { write, .. }) => write.answer(Err(closed())),
        Task::Close => return None,
        // Dropping the reply channel gives the caller 503.
        other => drop(other),
    }
    Some(())
}

/// Rewrites the data file after a sync of it failed, if possible.
///
/// After a failed sync the operating system may drop the data that it could not write and treat it as
/// written. Reading the file then proves nothing about what is on disk.
///
/// The state of the last acknowledged commit does not depend on that data. redb never overwrites what a
/// commit refers to before the next commit is on disk. It syncs twice: first everything that a commit refers
/// to, then the one sector that makes the commit valid. So the state that the header names was synced
/// completely, whether it is the last acknowledged commit or the commit whose second sync failed. That state is
/// copied to a new file, which contains no doubtful pages and replaces the old file.
///
/// If the disk has no room for a second file, the old file cannot be read completely, or it cannot be
/// replaced, the old file stays. The store can continue with it: the doubtful pages are pages that no commit
/// refers to, and redb rewrites them before a commit does.
///
/// # Errors
/// When it is uncertain whether the new file replaced the old one. Neither may accept writes then, because a
/// power cut could leave either.
fn rewrite(fs: &FsHandle, data: &Path) -> Result<()> {
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
