//! The storage layer. No other folder uses redb.
//!
//! Each type of record has one table. The store keeps its secondary indexes, counts and sums up to date
//! ([`record`]). Each request reads from one [`Snapshot`], so its response is consistent. Changes go through
//! [`Store::write`]: the writer thread runs the rule inside the current transaction, undoes all of it if it
//! fails, and returns once it is on disk.
//!
//! What reads or writes the file, here and in the folders above, fails with 503 if the disk fails or the file is closed, and
//! with 500 if the file is damaged. The documentation of functions mentions only other errors.

mod changes;
mod disk;
mod export;
mod format;
mod kinds;
mod node;
mod opening;
mod origin;
mod packed;
mod reads;
pub mod record;
#[cfg(test)]
mod tests;
mod values;
mod whole;
mod write;
mod writer;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use redb::Database;
use tokio::runtime::Handle;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

pub(crate) use changes::batch_diff::CommitsOf;
pub use changes::undo_log::Change;
pub use disk::address::{looks_like_address, mask_addresses};
pub use disk::engine::DEFAULT_CACHE;
pub use disk::file::{beside, folder_of, follow_link};
pub use disk::file_system;
pub use disk::open_error::OpenError;
pub use disk::owner::give_to_owner;
pub use disk::place::{DatabaseUrl, Destination, Place};
pub use export::import::{Imported, import};
pub use export::organization_export::{SelectOrganization, Selected};
pub use export::staged_export::StagedExport;
pub use export::{ExportOptions, require_absent};
pub use format::secrets::{WorkspaceId, signing_secret_of};
pub use kinds::canonical::canonical_line;
pub use kinds::export_lines::Redaction;
pub use kinds::record_registry::{RecordRegistry, RecordType, RecordTypeOf};
pub use node::shared_restore::{found_from, require_no_workspace};
pub(crate) use origin::origin_metrics::{OriginCall, OriginMetrics};
pub use origin::repeated_warning::RepeatedWarning;
pub use origin::trouble::Trouble;
pub use reads::bounded_read::{BoundedRead, CancelToken};
pub use reads::check_report::CheckReport;
pub use reads::progress::{Progress, Stage};
pub use reads::snapshot::Snapshot;
pub use record::Added;
pub use record::byte_usage::Owner;
pub(crate) use record::impl_record;
pub use record::{Count, Index, Indexed, Record, Reference, Row, Sum, Tx};
pub use values::key::Key;
pub use values::raw::{AnyTx, Raw};
pub use values::schema::Table;
pub use values::window::{Order, Window};
pub use values::{key, schema};
pub use whole::backup::{Backup, receive, remove_incomplete_backup};
pub use whole::compact::Compacted;
pub use whole::restore::PreparedRestore;
pub use whole::sent_copy::SentCopy;
pub use whole::space::{FreeSpace, SpaceUsage};
pub use write::WriteTx;
pub use write::access::{AccessTables, AccessVersion};
pub use write::adopt::{find_taken, payload_of};
pub use write::cell::{Cell, stored_cell};
pub use writer::metrics::{PageCache, RecordCounts, StoreMetrics};
pub(crate) use writer::watchers::{WakeOnCommit, Watch};

use crate::error::Result;
use crate::fair_queue::Consumer;
use crate::secret::SigningSecret;

use changes::hot_values::HotValues;
use disk::engine::closed;
use disk::file::{self, FileLock};
use disk::file_system::{FileSystem, FsHandle, OsFileSystem};
use format::migrate::open_database;
use format::secrets::stored_secret;
use origin::copy_source::CopySource;
use origin::origin_state::away;
use writer::asker::Asker;
use writer::queue::{self, Sender};
use writer::queued::{PendingWrite, flatten_reply};
use writer::shared::Shared;
use writer::task::Task;
use writer::thread::{self, OriginWriter, Writer};

/// An open data file.
///
/// Cloning is cheap. [`close`](Store::close) waits until the file is closed. If the last clone is dropped
/// without it, the writer thread closes the file a moment later.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    queue: Arc<Sender>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    path: Arc<Path>,
    fs: FsHandle,
    /// The shared database whose copy the file is; `None` for a data file.
    source: Option<Arc<CopySource>>,
    /// Shared by readers of the whole file; held exclusively by a compaction.
    walk_lock: Arc<RwLock<()>>,
}

impl Store {
    /// Opens the data file at `path` with a page cache of `cache` bytes. If `path` is a symbolic link, the
    /// store uses the path of its target.
    ///
    /// # Errors
    /// When the file is missing, in use, not a Steward data file, newer than this release, or damaged.
    pub fn open(path: &Path, cache: usize) -> Result<Self, OpenError> {
        Self::open_on(OsFileSystem::shared(), path, cache)
    }

    /// Opens the data file as [`open`](Self::open) does, on another disk.
    #[doc(hidden)]
    pub fn open_on(
        file_system: Arc<dyn FileSystem>,
        path: &Path,
        cache: usize,
    ) -> Result<Self, OpenError> {
        let (fs, path) = (FsHandle::new(file_system), &follow_link(path)?);
        let lock = FileLock::take_for_existing(&fs, path)?;
        let opened = file::remove_draft(&fs, path);
        match opened.and_then(|()| open_database(&fs, path, cache)) {
            Ok(database) => Self::start(fs, path, cache, lock, (database, None)),
            Err(error) => {
                lock.release();
                Err(error)
            }
        }
    }

    fn start(
        fs: FsHandle,
        path: &Path,
        cache: usize,
        lock: FileLock,
        (database, origin): (Database, Option<OriginWriter>),
    ) -> Result<Self, OpenError> {
        let (queue, tasks) = queue::queue();
        let queue = Arc::new(queue);
        let file = Arc::default();
        let first =
            thread::snapshot(&database, &Arc::downgrade(&queue))?.of_file(Arc::clone(&file));
        let first = origin.iter().fold(first, |first, origin| first.at(origin.position));
        let state = origin.as_ref().map(|origin| Arc::clone(&origin.state));
        let shared = Arc::new(Shared::new(first, state));
        shared.place.note(&fs, path);
        let runtime = Handle::try_current().ok();
        let source = origin.as_ref().map(|origin| Arc::clone(&origin.source));
        if let Some(OriginWriter { source, state, .. }) = &origin {
            let asker = Asker {
                source: Arc::clone(source),
                state: Arc::clone(state),
                shared: Arc::clone(&shared),
                queue: Arc::downgrade(&queue),
                runtime: runtime.clone(),
            };
            asker.start().map_err(OpenError::io("start a thread of", path))?;
        }
        let writer = Writer {
            fs: fs.clone(),
            path: path.to_owned(),
            cache,
            lock,
            queue: tasks,
            sender: Arc::downgrade(&queue),
            shared: Arc::clone(&shared),
            expected: 1,
            hot: HotValues::default(),
            file,
            runtime,
            origin,
        };
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || writer.run(database))
            .map_err(OpenError::io("start the writer of", path))?;
        Ok(Self {
            shared,
            queue,
            thread: Arc::new(Mutex::new(Some(thread))),
            path: path.into(),
            fs,
            source,
            walk_lock: Arc::default(),
        })
    }

    /// The path of the data file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is open and accepts writes.
    pub fn ready(&self) -> bool {
        self.shared.ready.load(Ordering::Acquire)
            && self.shared.origin.as_ref().is_none_or(|origin| !origin.is_away())
    }

    /// Whether reads are answered, as far as that is known.
    pub(crate) fn answers_reads(&self) -> bool {
        let is_open = self.shared.snapshot.load().is_some();
        is_open && self.shared.origin.as_ref().is_none_or(|origin| !origin.is_away())
    }

    /// Returns the state of the last commit. The state does not change while the caller holds it.
    #[doc(hidden)]
    pub fn snapshot(&self) -> Result<Arc<Snapshot>> {
        self.shared.snapshot.load_full().ok_or_else(closed)
    }

    /// Returns the cell that the data belongs to.
    pub fn cell(&self) -> Result<Cell> {
        stored_cell(&*self.snapshot()?)
    }

    /// Returns the signing secret of this data file.
    #[doc(hidden)]
    pub fn signing_secret(&self) -> Result<SigningSecret> {
        stored_secret(&*self.snapshot()?)
    }

    /// Returns the workspace of this data file.
    pub(crate) fn workspace(&self) -> Result<WorkspaceId> {
        WorkspaceId::stored(&*self.snapshot()?)
    }

    /// Begins to read the whole file. The file is not compacted until the caller drops the guard.
    async fn begin_walk(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.walk_lock).read_owned().await
    }

    /// Runs `rule` as a write of the service or its operator. See [`write_for`](Self::write_for) for writes
    /// of a consumer.
    ///
    /// # Errors
    /// The error of the rule; 503 when the queue is full, the file is closed, or the commit failed.
    #[doc(hidden)]
    pub async fn write<T, F>(&self, rule: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut WriteTx<'_>) -> Result<T> + Send + 'static,
    {
        self.write_for(None, rule).await.map(|(written, _)| written)
    }

    /// Runs `rule` inside the current write transaction. Once the commit is on disk, returns the result of
    /// the rule and the state that the commit left. That state includes other writes of the same commit,
    /// unless the rule ended its batch ([`WriteTx::end_batch`]). The queue serves consumers in turn.
    ///
    /// The rule may run more than once: on a shared database, the commit of another node may come first. So the rule must
    /// depend on nothing but its arguments and `tx`. If it returns an error or panics, all of its changes are undone.
    ///
    /// # Errors
    /// The error of the rule; 503 when the queue or the consumer's share of it is full, the file is closed,
    /// or the commit failed.
    #[doc(hidden)]
    pub async fn write_for<T, F>(
        &self,
        consumer: Option<Consumer>,
        rule: F,
    ) -> Result<(T, Arc<Snapshot>)>
    where
        T: Send + 'static,
        F: Fn(&mut WriteTx<'_>) -> Result<T> + Send + 'static,
    {
        let (queued, answer) = PendingWrite::new(rule);
        let sent = self.require_ready().and_then(|()| self.queue.send_write(consumer, queued));
        let written = match sent {
            Ok(()) => flatten_reply(answer.await).flatten(),
            Err(refused) => Err(refused),
        };
        self.shared.stats.note_refusal(&written);
        written.flatten()
    }

    fn require_ready(&self) -> Result<()> {
        match &self.shared.origin {
            Some(origin) if origin.is_away() => Err(away()),
            _ if self.shared.ready.load(Ordering::Acquire) => Ok(()),
            _ => Err(closed()),
        }
    }

    /// Completes the queued writes, closes the file cleanly and releases its lock.
    pub async fn close(&self) {
        if let Some(source) = &self.source {
            source.close();
        }
        self.queue.send_always(Task::Close);
        let thread = self.thread.lock().map_or(None, |mut thread| thread.take());
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}
