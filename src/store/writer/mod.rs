//! The handle of a store, the thread that commits, and what they share.

pub(super) mod file_place;
pub(super) mod freshness;
pub(super) mod metrics;
pub(super) mod queue;
pub(super) mod task;
pub(super) mod thread;
pub(super) mod watchers;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use arc_swap::ArcSwapOption;
use redb::Database;
use tokio::runtime::Handle;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::base::erased::{AnyValue, downcast, erase};
use crate::base::error::Result;
use crate::base::secret::SigningSecret;
use crate::base::tasks::{run_blocking, spawn_thread};
use crate::fair::fair_queue::Consumer;
use crate::store::changes::value_log::ValueLogs;
use crate::store::disk::engine::closed;
use crate::store::disk::file::{self, FileLock, follow_link};
use crate::store::disk::file_system::{FileSystem, FsHandle, OsFileSystem};
use crate::store::disk::open_error::OpenError;
use crate::store::format::migrate::open_database;
use crate::store::format::secrets::{WorkspaceId, stored_secret};
use crate::store::origin::copy_source::CopySource;
use crate::store::origin::state::away;
use crate::store::reads::snapshot::Snapshot;
use crate::store::write::WriteTx;
use crate::store::write::cell::{Cell, stored_cell};

use file_place::FilePlace;
use freshness::FreshnessThread;
use metrics::WriterStats;
use queue::Sender;
use task::{QueuedWrite, Rule, Task, flatten_reply};
use thread::{OriginWriter, Writer};
use watchers::Watchers;

/// An open data file.
///
/// Cloning is cheap. [`close`](Store::close) waits until the file is closed. If the last clone is dropped
/// without it, the writer thread closes the file a moment later.
#[derive(Clone)]
pub struct Store {
    pub(in crate::store) shared: Arc<Shared>,
    pub(in crate::store) queue: Arc<Sender>,
    pub(in crate::store) thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    pub(in crate::store) path: Arc<Path>,
    pub(in crate::store) fs: FsHandle,
    /// Shared by readers of the whole file; held exclusively by a compaction.
    pub(in crate::store) walk_lock: Arc<RwLock<()>>,
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
        let lock = FileLock::acquire_existing(&fs, path)?;
        let opened = file::remove_draft(&fs, path);
        match opened.and_then(|()| open_database(&fs, path, cache)) {
            Ok(database) => Self::start(fs, path, cache, lock, database, None),
            Err(error) => {
                lock.release();
                Err(error)
            }
        }
    }

    pub(in crate::store) fn start(
        fs: FsHandle,
        path: &Path,
        cache: usize,
        lock: FileLock,
        database: Database,
        origin: Option<OriginWriter>,
    ) -> Result<Self, OpenError> {
        let (queue, tasks) = queue::queue();
        let queue = Arc::new(queue);
        let file = Arc::default();
        let mut first =
            thread::snapshot(&database, &Arc::downgrade(&queue))?.of_file(Arc::clone(&file));
        if let Some(origin) = &origin {
            first.position = origin.position;
        }
        let source = origin.as_ref().map(|origin| Arc::clone(&origin.source));
        let shared = Arc::new(Shared {
            snapshot: ArcSwapOption::from_pointee(first),
            ready: AtomicBool::new(true),
            place: FilePlace::default(),
            generation: AtomicU64::new(0),
            access_version: AtomicU64::new(0),
            stats: WriterStats::default(),
            value_logs: ValueLogs::default(),
            origin: source.clone(),
            watchers: Watchers::default(),
        });
        shared.place.note(&fs, path);
        let runtime = Handle::try_current().ok();
        if let Some(source) = source {
            let freshness = FreshnessThread {
                source,
                shared: Arc::clone(&shared),
                queue: Arc::downgrade(&queue),
                runtime: runtime.clone(),
            };
            freshness.start().map_err(OpenError::io("start a thread of", path))?;
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
            file,
            runtime,
            origin,
        };
        let thread = spawn_thread("writer", move || writer.run(database))
            .map_err(OpenError::io("start the writer of", path))?;
        Ok(Self {
            shared,
            queue,
            thread: Arc::new(Mutex::new(Some(thread))),
            path: path.into(),
            fs,
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
            && self.shared.origin.as_ref().is_none_or(|origin| !origin.state.is_away())
    }

    /// Whether reads are answered, as far as that is known.
    pub(crate) fn answers_reads(&self) -> bool {
        let is_open = self.shared.snapshot.load().is_some();
        is_open && self.shared.origin.as_ref().is_none_or(|origin| !origin.state.is_away())
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
    pub(in crate::store) async fn begin_walk(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.walk_lock).read_owned().await
    }

    /// Runs `rule` as a write of the service or its operator. See [`write_for`](Self::write_for) for writes
    /// of a consumer.
    ///
    /// # Errors
    /// The error of the rule; 503 when the queue is full, the file is closed, or the commit failed.
    #[doc(hidden)]
    pub fn write<T, F>(&self, rule: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: Fn(&mut WriteTx<'_>) -> Result<T> + Send + 'static,
    {
        self.write_boxed(Box::new(move |tx| rule(tx).map(erase)))
    }

    async fn write_boxed<T: 'static>(&self, rule: Rule) -> Result<T> {
        downcast(self.write_erased(None, rule).await?.0)
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
        let rule: Rule = Box::new(move |tx| rule(tx).map(erase));
        let (written, snapshot) = self.write_erased(consumer, rule).await?;
        Ok((downcast(written)?, snapshot))
    }

    /// Runs a rule as [`write_for`](Self::write_for) does.
    pub(crate) async fn write_erased(
        &self,
        consumer: Option<Consumer>,
        rule: Rule,
    ) -> Result<(AnyValue, Arc<Snapshot>)> {
        let (queued, answer) = QueuedWrite::new(rule);
        let sent = self.require_ready().and_then(|()| self.queue.send_write(consumer, queued));
        let written = match sent {
            Ok(()) => flatten_reply(answer.await).flatten(),
            Err(refused) => Err(refused),
        };
        self.shared.stats.note_refusal(&written);
        written.flatten()
    }

    pub(in crate::store) fn require_ready(&self) -> Result<()> {
        match &self.shared.origin {
            Some(origin) if origin.state.is_away() => Err(away()),
            _ if self.shared.ready.load(Ordering::Acquire) => Ok(()),
            _ => Err(closed()),
        }
    }

    /// Completes the queued writes, closes the file cleanly and releases its lock.
    pub async fn close(&self) {
        if let Some(origin) = &self.shared.origin {
            origin.close();
        }
        self.queue.send_always(Task::Close);
        let thread = self.thread.lock().map_or(None, |mut thread| thread.take());
        if let Some(thread) = thread {
            let _ = run_blocking(move || thread.join()).await;
        }
    }
}

/// State that the writer thread shares with the rest of the store.
pub struct Shared {
    /// The state after the last commit, or `None` while the file is closed.
    pub snapshot: ArcSwapOption<Snapshot>,
    /// Whether the file is open and its last commit succeeded.
    pub ready: AtomicBool,
    /// The file that was opened, to notice that its name is gone or names another file.
    pub place: FilePlace,
    /// How often the file was closed. [`Snapshot::generation`] returns this number.
    pub generation: AtomicU64,
    /// The version of the access tables in the file ([`AccessVersion`](crate::store::write::access::AccessVersion)).
    pub access_version: AtomicU64,
    /// Statistics for metrics and readiness.
    pub stats: WriterStats,
    /// Receives the values that commits change, for copies under way.
    pub value_logs: ValueLogs,
    /// The shared database whose copy the file is; `None` for a data file.
    pub origin: Option<Arc<CopySource>>,
    /// Called before a state is shown. Only a store with an origin calls them.
    pub watchers: Watchers,
}

impl Shared {
    /// Stops all reads and writes.
    pub fn close(&self) {
        self.ready.store(false, Ordering::Release);
        self.snapshot.store(None);
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.stats.note(None);
    }
}

/// Closes the store when the writer thread ends, also by a panic.
pub struct CloseOnDrop(pub Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
        if let Some(origin) = &self.0.origin {
            origin.state.close();
        }
    }
}
