//! `compact`: returns the unused space of the data file to the operating system. If the disk has room, a copy without unused space
//! replaces the file while it is served.
//!
//! Most of the work happens on a thread of low priority. The writer waits only for the end: it applies the last changes to
//! the copy, renames the copy, and continues with it. A crash leaves one file or the other, and both contain all commits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::{CompactionError, Database};
use serde::Serialize;
use tokio::sync::{OwnedRwLockWriteGuard, oneshot};
use tokio::time::timeout;

use crate::base::error::{Error, Result};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::store::changes::file_copy::{NotSwapped, PAGE_CACHE, fill, fill_copy, swap};
use crate::store::disk::engine::{begin, catch_panic, close, storage_error, unavailable};
use crate::store::disk::file;
use crate::store::disk::file_names::adopt;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::format::stored_position::carry_position;
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;
use crate::store::writer::Store;
use crate::store::writer::task::{Replacement, Task, flatten_reply};

use super::sliced_walk::SlicedWalk;
use super::space::FreeSpace;

/// How long a compaction in the background waits for what is reading the whole file.
const WALKS_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a compaction waits for requests that are still reading.
const READERS_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which it tries again.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The free space that a compaction by a copy leaves at least: 64 MiB.
const MIN_ROOM: u64 = 64 * 1024 * 1024;

/// A completed compaction.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Compacted {
    /// The size of the file before, in bytes.
    pub bytes_before: u64,
    /// The size of the file after, in bytes.
    pub bytes: u64,
}

impl Store {
    /// Returns the unused space of the file to the operating system. If the disk has room for a copy of what is used, requests
    /// are served meanwhile. If not, this waits for requests that are reading, and new requests fail with 503.
    ///
    /// # Errors
    /// 400 when a backup, an export, a check or another compaction is reading the whole file; 503 when requests read for too
    /// long, the file changes faster than it is copied, is closed, or cannot be written or replaced.
    #[doc(hidden)]
    pub async fn compact(&self, progress: &Progress) -> Result<Compacted> {
        let alone = self.begin_compaction()?;
        if self.has_room_for_copy(MIN_ROOM).await? {
            return self.replace_by_copy(alone, progress).await;
        }
        drop(alone);
        self.compact_in_place(progress).await
    }

    /// Compacts the file as [`compact`](Self::compact) does while requests are served, or not at all. Waits some time for
    /// what is reading the whole file.
    ///
    /// # Errors
    /// The errors of [`compact`](Self::compact); also 503 when a copy would leave less than `reserve` bytes of the disk free.
    pub(crate) async fn compact_while_serving(&self, reserve: u64) -> Result<Compacted> {
        let alone = timeout(WALKS_TIMEOUT, Arc::clone(&self.walk_lock).write_owned()).await;
        let Ok(alone) = alone else { return Err(under_way()) };
        if !self.has_room_for_copy(reserve.max(MIN_ROOM)).await? {
            return Err(unavailable("the disk has no room for a copy"));
        }
        self.replace_by_copy(alone, &Progress::silent()).await
    }

    /// Compacts the file where it is. Waits for requests that are reading; new requests fail with 503 meanwhile.
    ///
    /// # Errors
    /// The errors of [`compact`](Self::compact).
    #[doc(hidden)]
    pub async fn compact_in_place(&self, progress: &Progress) -> Result<Compacted> {
        progress.begin("compacting", 0);
        let _alone = self.begin_compaction()?;
        let store = self.clone();
        self.with_exclusive_file(move |mut database| {
            let bytes_before = store.size()?;
            compact(&mut database)?;
            close(database)?;
            Ok(Compacted { bytes_before, bytes: store.size()? })
        })
        .await
    }

    fn begin_compaction(&self) -> Result<OwnedRwLockWriteGuard<()>> {
        Arc::clone(&self.walk_lock).try_write_owned().map_err(|_| under_way())
    }

    /// Whether a copy of the used part of the file leaves `reserve` bytes of the disk free.
    async fn has_room_for_copy(&self, reserve: u64) -> Result<bool> {
        let Some(room) = FreeSpace::of(self).get() else { return Ok(true) };
        // Commits that happen meanwhile make the copy larger.
        Ok(room.free > reserve.saturating_add(self.space().await?.used / 4 * 5))
    }
}

fn under_way() -> Error {
    let text = "a backup, an export, a check or another compaction is running; compact after it";
    Error::invalid("under_way", text)
}

fn compact(database: &mut Database) -> Result<()> {
    let begun = Instant::now();
    loop {
        match database.compact() {
            // One pass may free space that the next pass can use.
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(CompactionError::TransactionInProgress) if begun.elapsed() < READERS_TIMEOUT => {
                std::thread::sleep(POLL_INTERVAL);
            }
            Err(CompactionError::TransactionInProgress) => {
                return Err(unavailable("requests are still reading the data file"));
            }
            Err(error) => return Err(storage_error(error)),
        }
    }
}

/// How many bytes of changes may be left for the writer: 1 MiB.
const LAST_CHANGES: u64 = 1024 * 1024;
/// How often changes are applied to the copy until so few are left.
const MAX_ROUNDS: usize = 16;

/// A copy under way. Dropping this removes it, unless it has replaced the data file.
struct Draft {
    fs: FsHandle,
    path: PathBuf,
    /// There is one draft at a time, also if its caller no longer waits. Released after the removal.
    _alone: OwnedRwLockWriteGuard<()>,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = file::remove(&self.fs, &self.path);
    }
}

impl Store {
    /// Replaces the file with a copy of it. `alone` holds the walk lock, which is free again when this returns.
    ///
    /// # Errors
    /// 503 when the file is closed meanwhile, the copy cannot be written, or the file cannot be renamed: it may be a mount point
    /// of its own. The file is then unchanged.
    pub(in crate::store) async fn replace_by_copy(
        &self,
        alone: OwnedRwLockWriteGuard<()>,
        progress: &Progress,
    ) -> Result<Compacted> {
        let bytes_before = self.size()?;
        let mut walk = self.begin_sliced_walk(Table::ALL).await?;
        // Until the copy replaces the data file, a failed sync of it says nothing about that file.
        let (fs, data) = (self.fs.separate(), self.path().to_owned());
        let path = file::beside(&data, file::COMPACTING);
        let draft = Draft { fs: fs.clone(), path, _alone: alone };
        let progress = progress.clone();
        let copying = move || {
            copy(&fs, &draft.path, &mut walk, &progress)?;
            adopt(&draft.path, &data)?;
            Ok::<_, OpenError>((draft, walk, data))
        };
        let copied = run_low_priority(Priority::Upkeep, copying).await?;
        let (draft, mut walk, data) = copied.map_err(not_copied)?;
        let (reply, answer) = oneshot::channel();
        let fs = self.fs.clone();
        self.queue.send_always(Task::Replace(Box::new(move |current, cache| {
            let complete = || complete(&fs, current, &draft.path, cache, &mut walk);
            let copy = catch_panic(complete);
            let copy = match copy.unwrap_or_else(|| Err(Error::internal("redb panicked"))) {
                Ok(copy) => copy,
                Err(cause) => {
                    // No sync of the data file has failed: the writer would have opened it again.
                    fs.clear_failed_sync();
                    return Replacement::Kept(tell(draft, reply, Err(cause)));
                }
            };
            match swap(&fs, &draft.path, &data) {
                Ok(()) => Replacement::Replaced(copy, tell(draft, reply, Ok(()))),
                Err(NotSwapped::Kept(cause)) => {
                    Replacement::Kept(tell(draft, reply, Err(not_copied(cause))))
                }
                Err(NotSwapped::Unknown(cause)) => {
                    // Neither file may accept writes until one of them surely has the name.
                    fs.note_failed_sync();
                    Replacement::Unknown(not_copied(cause))
                }
            }
        })));
        flatten_reply(answer.await).flatten()?;
        Ok(Compacted { bytes_before, bytes: self.size()? })
    }
}

/// Returns what releases the draft and then sends the outcome, so that the next walk of the file can begin.
fn tell(
    draft: Draft,
    reply: oneshot::Sender<Result<()>>,
    outcome: Result<()>,
) -> Box<dyn FnOnce() + Send> {
    Box::new(move || {
        drop(draft);
        let _ = reply.send(outcome);
    })
}

fn not_copied(cause: OpenError) -> Error {
    match cause {
        OpenError::Refused(error) => error,
        cause => unavailable(cause),
    }
}

/// Creates a copy at `draft`, up to the last changes.
fn copy(
    fs: &FsHandle,
    draft: &Path,
    walk: &mut SlicedWalk,
    progress: &Progress,
) -> Result<(), OpenError> {
    file::remove(fs, draft)?;
    file::fill_draft(fs, draft, PAGE_CACHE, |database| {
        let mut steps = progress.begin("copying", walk.of);
        fill_copy(database, draft, progress, |visit| walk.walk(Table::ALL, &mut steps, visit))?;
        for _ in 0..MAX_ROUNDS {
            let changed = fill(begin(database)?, |visit| walk.catch_up(Table::ALL, visit))?;
            if changed <= LAST_CHANGES {
                return Ok(());
            }
        }
        let text = "the data file changes faster than it is copied";
        Err(unavailable(text).into())
    })
}

/// Applies the last changes to the copy, and compares it with the current file.
fn complete(
    fs: &FsHandle,
    current: &Database,
    draft: &Path,
    cache: usize,
    walk: &mut SlicedWalk,
) -> Result<Database> {
    // Since the copy began, the file may have been restored.
    walk.state()?;
    let copy = file::open(fs, draft, cache).map_err(not_copied)?;
    fill(begin(&copy)?, |visit| walk.catch_up(Table::ALL, visit))?;
    carry_position(current, &copy)?;
    let lengths = |database| {
        let snapshot = Snapshot::begin(database)?;
        Table::ALL.iter().map(|table| snapshot.len(*table)).collect::<Result<Vec<_>>>()
    };
    if lengths(&copy)? == lengths(current)? {
        return Ok(copy);
    }
    Err(Error::internal("a copy of the data file differs from it"))
}
