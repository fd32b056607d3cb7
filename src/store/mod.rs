//! The storage layer: the only folder that names redb.
//!
//! Records lie in one table each, with secondary indexes and counts that the store alone keeps in
//! step ([`record`]). Reading goes through a [`Snapshot`], one a request, so every answer is
//! consistent. Changing goes through [`Store::write`]: the rule runs on the one writer thread inside
//! the current transaction, is taken back whole when it fails, and is answered when it is on disk.

mod backup;
mod bounded;
mod bytes;
mod check;
mod compact;
pub mod disk;
mod engine;
mod export;
mod file;
mod import;
pub mod key;
mod lines;
mod migrate;
mod numbers;
mod open_error;
mod overlay;
mod panics;
mod per_table;
mod progress;
mod queue;
mod queued;
mod read;
pub mod record;
mod restore;
mod rests;
mod rewrite;
pub mod schema;
mod scrub;
mod secrets;
mod snapshot;
mod space;
mod sums;
#[cfg(test)]
mod tests;
mod undo;
mod watch;
mod window;
mod write;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use arc_swap::ArcSwapOption;
use redb::Database;
use tokio::runtime::Handle;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, oneshot};

pub use backup::{Backup, receive};
pub use bounded::{BoundedRead, Interest};
pub use bytes::Owner;
pub use check::{Checks, Excused, Findings, Kind, kind, secret_kind};
pub use compact::{Compacted, Space};
pub use export::{Export, Exported, Exporting, require_absent};
pub use file::{beside, folder_of, resolve};
pub use import::{Imported, import};
pub use key::Key;
pub use lines::Secrecy;
pub use open_error::OpenError;
pub use progress::{Progress, Stage};
pub use read::{Raw, Tx};
pub use record::{Count, Form, Index, Indexed, Record, Reference, Row};
pub use restore::{Prepared, Restored};
pub use schema::Table;
pub use snapshot::Snapshot;
pub use space::FreeSpace;
pub use sums::{Sum, Summand};
pub use undo::Change;
pub use watch::{Commit, Figures, PageCache, Records};
pub use window::{Order, Window};
pub use write::WriteTx;

use crate::error::{Error, Result};
use crate::fair::Consumer;
use crate::secret::{Draw, SigningSecret};

use disk::{Disk, Drive, Files};
use engine::{RETRY_AFTER, begin, storage_error};
use file::Lock;
use migrate::open_database;
use queue::{Refused, Sender};
use queued::Queued;
use watch::Watched;
use writer::{Shared, Task, Writer};

/// redb's page cache where no other size is asked for: 64 MiB.
pub const DEFAULT_CACHE: usize = 64 * 1024 * 1024;

/// An open data file.
///
/// Cheap to clone. [`close`](Store::close) waits until the file is closed; where the last clone is dropped
/// without it, the writer thread closes the file a moment later.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    queue: Arc<Sender>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    path: Arc<Path>,
    drive: Drive,
    /// Held by whoever reads one moment of the whole file, and alone by what cannot go on beside that.
    walks: Arc<RwLock<()>>,
}

impl Store {
    /// Opens the data file at `path` with a page cache of `cache` bytes. If `path` is a symbolic link, the store's
    /// path is that of the file behind it.
    ///
    /// # Errors
    /// When the file is missing, in use, not ours, newer than this release, or damaged.
    pub fn open(path: &Path, cache: usize) -> Result<Self, OpenError> {
        Self::open_on(Files::shared(), path, cache)
    }

    /// Does what [`open`](Self::open) does, on another disk.
    ///
    /// # Errors
    /// When the file is missing, in use, not ours, newer than this release, or damaged.
    pub fn open_on(disk: Arc<dyn Disk>, path: &Path, cache: usize) -> Result<Self, OpenError> {
        let (drive, path) = (Drive::new(disk), &resolve(path));
        let lock = Lock::take_for_existing(&drive, path)?;
        let opened = file::remove_draft(&drive, path);
        match opened.and_then(|()| open_database(&drive, path, cache)) {
            Ok(database) => Self::start(drive, path, cache, lock, database),
            Err(error) => {
                lock.withdraw();
                Err(error)
            }
        }
    }

    /// Makes a data file at `path`, with what `fill` puts into it, and opens it. The file appears
    /// whole or not at all.
    ///
    /// # Errors
    /// When there is a file already, another process is making it, `fill` refuses, or the operating
    /// system does.
    pub fn create<T>(
        path: &Path,
        cache: usize,
        draw: &mut Draw,
        fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError>,
    ) -> Result<(Self, T), OpenError> {
        Self::create_on(Files::shared(), path, cache, draw, fill)
    }

    /// Does what [`create`](Self::create) does, on another disk.
    ///
    /// # Errors
    /// When there is a file already, another process is making it, `fill` refuses, or the operating
    /// system does.
    pub fn create_on<T>(
        disk: Arc<dyn Disk>,
        path: &Path,
        cache: usize,
        draw: &mut Draw,
        fill: impl FnOnce(&mut WriteTx<'_>, &SigningSecret) -> Result<T, OpenError>,
    ) -> Result<(Self, T), OpenError> {
        let drive = Drive::new(disk);
        file::require_absent(&drive, path)?;
        let lock = Lock::take(path)?;
        let mut filled = None;
        let created = file::create(&drive, path, cache, |database| {
            let transaction = begin(database)?;
            let mut tx = WriteTx::new(&transaction);
            tx.begin_file()?;
            let secret = SigningSecret::new(draw);
            tx.put_secret(&secret)?;
            filled = Some(fill(&mut tx, &secret)?);
            tx.finish()?;
            transaction.commit().map_err(storage_error)?;
            Ok(())
        });
        if let Err(error) = created {
            lock.withdraw();
            return Err(error);
        }
        let database = open_database(&drive, path, cache)?;
        let store = Self::start(drive, path, cache, lock, database)?;
        let filled = filled.ok_or_else(|| Error::internal("a new file was not filled"))?;
        Ok((store, filled))
    }

    fn start(
        drive: Drive,
        path: &Path,
        cache: usize,
        lock: Lock,
        database: Database,
    ) -> Result<Self, OpenError> {
        let (queue, tasks) = queue::queue();
        let queue = Arc::new(queue);
        let first = writer::snapshot(&database, &Arc::downgrade(&queue))?;
        let shared = Arc::new(Shared {
            snapshot: ArcSwapOption::from_pointee(first),
            ready: AtomicBool::new(true),
            openings: AtomicU64::new(0),
            watched: Watched::default(),
        });
        let writer = Writer {
            drive: drive.clone(),
            path: path.to_owned(),
            cache,
            lock,
            queue: tasks,
            sender: Arc::downgrade(&queue),
            shared: Arc::clone(&shared),
            expected: 1,
            runtime: Handle::try_current().ok(),
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
            drive,
            walks: Arc::default(),
        })
    }

    /// Where the data file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is open and takes writes.
    pub fn ready(&self) -> bool {
        self.shared.ready.load(Ordering::Acquire)
    }

    /// The state that the last commit left. It stays as it is for as long as it is held.
    ///
    /// # Errors
    /// 503 while the file is closed.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>> {
        self.shared
            .snapshot
            .load_full()
            .ok_or_else(|| Error::unavailable(RETRY_AFTER, "the data file is closed"))
    }

    /// The same, for who reads the whole of it: until the first value is dropped, the file is not compacted.
    async fn begin_walk(&self) -> Result<(OwnedRwLockReadGuard<()>, Arc<Snapshot>)> {
        let under_way = Arc::clone(&self.walks).read_owned().await;
        Ok((under_way, self.snapshot()?))
    }

    /// Runs `rule` as a write of the service or its operator, as [`write_for`](Self::write_for) does for a consumer.
    ///
    /// # Errors
    /// What the rule answers; 503 when the queue is full, the file is closed, or the commit failed.
    pub async fn write<T, F>(&self, rule: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut WriteTx<'_>) -> Result<T> + Send + 'static,
    {
        self.write_for(None, rule).await.map(|(written, _)| written)
    }

    /// Runs `rule` inside the current write transaction. Returns what the rule returned once it is on disk, with the
    /// state that the commit left; other writes of the same commit show in that state, unless the rule ended its
    /// batch ([`WriteTx::end_batch`]). Consumers take turns.
    ///
    /// The rule may run more than once, and depends on nothing but its arguments and `tx`: a large write whose consumer
    /// rests is taken back and runs later. What a rule wrote is taken back whole if it returns an error or panics.
    ///
    /// # Errors
    /// What the rule answers; 503 when the queue or the consumer's share of it is full, the file is closed, or the
    /// commit failed.
    pub async fn write_for<T, F>(
        &self,
        consumer: Option<Consumer>,
        rule: F,
    ) -> Result<(T, Arc<Snapshot>)>
    where
        T: Send + 'static,
        F: Fn(&mut WriteTx<'_>) -> Result<T> + Send + 'static,
    {
        let (queued, answer) = Queued::new(rule);
        let written = match self.require_ready() {
            Ok(()) => match self.queue.send_write(consumer, queued) {
                Ok(displaced) => {
                    if let Some(write) = displaced {
                        write.answer(Err(refusal(Refused::ShareUsed)));
                    }
                    answered(answer.await).flatten()
                }
                Err(why) => Err(refusal(why)),
            },
            Err(closed) => Err(closed),
        };
        self.shared.watched.note_refusal(&written);
        written.flatten()
    }

    /// Runs `work` on the writer thread between two transactions, while no write is under way: the
    /// bytes of the file are then exactly the last commit. Writes wait; reads do not.
    ///
    /// # Errors
    /// 503 when the queue is full or the file is closed.
    pub(crate) async fn between_writes<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Task::Pause(Box::new(move || {
            let _ = reply.send(work());
        })))?;
        answered(answer.await)
    }

    /// Hands the open file to `work` on the writer thread, and opens it again afterwards. Meanwhile nothing is
    /// served.
    ///
    /// # Errors
    /// What `work` answers; 503 when the queue is full or the file is closed.
    pub(crate) async fn exchange<T: Send + 'static>(
        &self,
        work: impl FnOnce(Database) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Task::Exchange(Box::new(move |database| {
            let outcome = work(database);
            Box::new(move || drop(reply.send(outcome)))
        })))?;
        answered(answer.await)?
    }

    fn enqueue(&self, task: Task) -> Result<()> {
        self.require_ready()?;
        self.queue.send(task).map_err(refusal)
    }

    fn require_ready(&self) -> Result<()> {
        if self.ready() { Ok(()) } else { Err(refusal(Refused::Closed)) }
    }

    /// Finishes what is queued, closes the file clean and lets go of its lock.
    pub async fn close(&self) {
        self.queue.send_always(Task::Close);
        let thread = self.thread.lock().map_or(None, |mut thread| thread.take());
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

fn refusal(why: Refused) -> Error {
    match why {
        Refused::Full => Error::unavailable(RETRY_AFTER, "the write queue is full"),
        Refused::ShareUsed => Error::overloaded(RETRY_AFTER, "too many writes of one tenant wait"),
        Refused::Closed => Error::unavailable(RETRY_AFTER, "the data file is closed"),
    }
}

fn answered<T>(answer: Result<T, oneshot::error::RecvError>) -> Result<T> {
    answer.map_err(|_| Error::unavailable(RETRY_AFTER, "the data file was closed meanwhile"))
}
