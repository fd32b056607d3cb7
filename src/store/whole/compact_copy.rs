//! Compacting the data file while it is served: a copy without unused space replaces it.
//!
//! Most of the work happens on a thread of low priority. The writer waits only for the end: it applies the last changes to
//! the copy, renames the copy, and continues with it. A crash leaves one file or the other, and both contain all commits.

use std::path::{Path, PathBuf};

use redb::Database;
use tokio::sync::{OwnedRwLockWriteGuard, oneshot};

use crate::error::{Error, Result};
use crate::low_priority::{Priority, run_low_priority};
use crate::store::changes::file_copy::{NotSwapped, PAGE_CACHE, fill, fill_copy, swap};
use crate::store::disk::engine::{RETRY_AFTER, begin, catch_panic};
use crate::store::disk::file;
use crate::store::disk::file_names::adopt;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::format::stored_position::carry_position;
use crate::store::reads::progress::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;
use crate::store::writer::Store;
use crate::store::writer::queued::flatten_reply;
use crate::store::writer::task::{Replacement, Task};

use super::sliced_walk::{SliceLimit, SlicedWalk};

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
    ) -> Result<()> {
        let mut walk = self.begin_sliced_walk(Table::ALL, SliceLimit::default()).await?;
        // Until the copy replaces the data file, a failed sync of it says nothing about that file.
        let (fs, data) = (self.fs.separate(), self.path().to_owned());
        let path = file::compact_draft_path(&data);
        let draft = Draft { fs: fs.clone(), path, _alone: alone };
        let progress = progress.clone();
        let copying = move || {
            copy(&fs, &draft.path, &mut walk, &progress)?;
            adopt(&draft.path, &data)?;
            Ok::<_, OpenError>((draft, walk, data))
        };
        let copied = run_low_priority(Priority::Upkeep, copying).await?;
        let (draft, mut walk, data) = copied.map_err(unavailable)?;
        let (reply, answer) = oneshot::channel();
        let fs = self.fs.clone();
        self.queue.send_always(Task::Replace(Box::new(move |current, cache| {
            let complete = || complete(&fs, (current, &draft.path, cache), &mut walk);
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
                    Replacement::Kept(tell(draft, reply, Err(unavailable(cause))))
                }
                Err(NotSwapped::Unknown(cause)) => {
                    // Neither file may accept writes until one of them surely has the name.
                    fs.note_failed_sync();
                    Replacement::Unknown(unavailable(cause))
                }
            }
        })));
        flatten_reply(answer.await).flatten()
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

fn unavailable(cause: OpenError) -> Error {
    match cause {
        OpenError::Refused(error) => error,
        cause => Error::unavailable(RETRY_AFTER, cause),
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
        fill_copy(database, draft, progress, |take| walk.walk(Table::ALL, &mut steps, take))?;
        for _ in 0..MAX_ROUNDS {
            let changed = fill(begin(database)?, |take| walk.catch_up(Table::ALL, take))?;
            if changed <= LAST_CHANGES {
                return Ok(());
            }
        }
        let text = "the data file changes faster than it is copied";
        Err(Error::unavailable(RETRY_AFTER, text).into())
    })
}

/// Applies the last changes to the copy, and compares it with the current file.
fn complete(
    fs: &FsHandle,
    (current, draft, cache): (&Database, &Path, usize),
    walk: &mut SlicedWalk,
) -> Result<Database> {
    // Since the copy began, the file may have been restored.
    walk.state()?;
    let copy = file::open(fs, draft, cache).map_err(unavailable)?;
    fill(begin(&copy)?, |take| walk.catch_up(Table::ALL, take))?;
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
