//! What of the store's work others may watch. The store counts; what becomes of the figures it does not know.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase, WriteTransaction};
use tokio::sync::oneshot;

use crate::error::Result;

use super::bytes::Owner;
use super::engine::{begin, storage_error};
use super::schema::Table;
use super::writer::{Task, Writer};
use super::{Store, answered};

/// A batch of writes that is on disk.
#[derive(Debug, Clone, Copy)]
pub struct Commit {
    /// How many writes it took, refused ones too.
    pub writes: usize,
    /// How long the disk took.
    pub took: Duration,
}

/// Hears of each commit, on the writer thread: it must be quick.
type Listener = Box<dyn Fn(Commit) + Send + Sync>;

/// What the writer thread leaves for those who watch.
#[derive(Default)]
pub(super) struct Watched {
    listener: OnceLock<Listener>,
    refused: AtomicU64,
    /// When the last commit ended; none since the file was closed.
    committed: Mutex<Option<Instant>>,
    occupied: AtomicBool,
}

/// Ends the occupation of the writer thread, also where that panics.
struct Occupation<'w>(&'w AtomicBool);

impl Drop for Occupation<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Watched {
    /// Does, on the writer thread, what is no write and takes as long as the file is large.
    pub(super) fn occupied<T>(&self, work: impl FnOnce() -> T) -> T {
        self.occupied.store(true, Ordering::Release);
        let _ends = Occupation(&self.occupied);
        work()
    }

    pub(super) fn committed(&self, commit: Commit) {
        self.note(Some(Instant::now()));
        if let Some(listener) = self.listener.get() {
            listener(commit);
        }
    }

    pub(super) fn closed(&self) {
        self.note(None);
    }

    /// Counts a write that the queue, the closed file, a failed commit, or a failed read of the file refused.
    /// `written` is an error if not the rule refused. A 503 of a rule about something else is no failure of a write.
    pub(super) fn note_refusal<T>(&self, written: &Result<Result<T>>) {
        let refused = match written {
            Err(_) => true,
            Ok(Err(ruled)) => ruled.status() == 503 && !ruled.is_overload(),
            Ok(Ok(_)) => false,
        };
        if refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn note(&self, moment: Option<Instant>) {
        *self.committed.lock().unwrap_or_else(PoisonError::into_inner) = moment;
    }
}

/// What the writer thread does with the open file when it is asked to.
pub(super) type Look = dyn FnOnce(&Writer, &Database) -> Result<()> + Send;

/// How the store stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// How large the data file is, in bytes.
    pub bytes: u64,
    /// How many writes wait for the writer.
    pub queued: usize,
    /// How many writes the queue, the closed file or a failed commit refused since the store was opened.
    pub refused: u64,
    /// What is in the file, while it is open.
    pub records: Option<Records>,
}

/// How much of what there is in the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Records {
    /// How many mails wait in the outbox.
    pub letters: u64,
    /// How many removed organizations and projects have yet to be swept.
    pub sweeps: u64,
    /// How many values there are, records and index entries.
    pub values: u64,
    /// How many organizations store more than a given number of bytes.
    pub large: u64,
    /// How many bytes the organization stores that stores most.
    pub largest: u64,
}

/// How redb's page cache stands; all zero without the feature `cache-metrics`. Its counts begin anew whenever the
/// file is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageCache {
    /// What it holds, in bytes.
    pub bytes: usize,
    /// How many pages were found in it.
    pub hits: u64,
    /// How many were read from the file.
    pub misses: u64,
    /// How many had to make room.
    pub evictions: u64,
}

impl Store {
    /// Has `listener` hear of each commit from now on. It is called on the writer thread, so it must be quick;
    /// there is one listener, and the first stays.
    pub fn on_commit(&self, listener: impl Fn(Commit) + Send + Sync + 'static) {
        let _kept = self.shared.watched.listener.set(Box::new(listener));
    }

    /// When the last commit ended, if there was one since the file was opened.
    pub fn committed_at(&self) -> Option<Instant> {
        *self.shared.watched.committed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether writes wait for what takes as long as the file is large: it is copied, compacted or restored.
    pub fn occupied(&self) -> bool {
        self.shared.watched.occupied.load(Ordering::Acquire)
    }

    /// How the store stands. Cheap, though it asks the operating system: not for request threads.
    /// Organizations that store more than `large` bytes are counted.
    pub fn figures(&self, large: u64) -> Figures {
        Figures {
            bytes: self.path.metadata().map_or(0, |data| data.len()),
            queued: self.queue.len(),
            refused: self.shared.watched.refused.load(Ordering::Relaxed),
            records: self.records(large).ok(),
        }
    }

    fn records(&self, bytes: u64) -> Result<Records> {
        let snapshot = self.snapshot()?;
        let (mut large, mut largest) = (0, 0);
        Owner::each_organization(&snapshot, |stored| {
            large += u64::from(stored > bytes);
            largest = stored.max(largest);
        })?;
        Ok(Records {
            large,
            largest,
            letters: snapshot.len(Table::Outbox)?,
            sweeps: snapshot.len(Table::Sweeps)?,
            values: snapshot.values()?,
        })
    }

    /// How the page cache stands. Waits for the writer, so for as long as a commit takes.
    ///
    /// # Errors
    /// 503 when the queue is full or the file is closed.
    pub async fn page_cache(&self) -> Result<PageCache> {
        self.look(|_, database| Ok(stand_of(database))).await
    }

    /// Commits a transaction that changes nothing: answers once it is on disk, as a write would be.
    ///
    /// # Errors
    /// 503 when the queue is full, the file is closed, or the commit failed.
    pub async fn prove(&self) -> Result<()> {
        self.look(|writer, database| writer.commit(database, begin(database)?, 0)).await
    }

    /// Has the writer thread do something with the open file. Where that fails, the file is opened again, and who
    /// waits is told 503.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Writer, &Database) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Task::Look(Box::new(move |writer, database| {
            let _ = reply.send(look(writer, database)?);
            Ok(())
        })))?;
        answered(answer.await)
    }
}

impl Writer {
    /// Has `transaction` on disk and shows what it left, even where that is what was there: a snapshot of an older
    /// state would keep the pages that each commit frees.
    pub(super) fn commit(
        &self,
        database: &Database,
        transaction: WriteTransaction,
        writes: usize,
    ) -> Result<()> {
        let begun = Instant::now();
        transaction.commit().map_err(storage_error)?;
        self.publish(database)?;
        self.shared.watched.committed(Commit { writes, took: begun.elapsed() });
        Ok(())
    }
}

fn stand_of(database: &Database) -> PageCache {
    let stats = database.cache_stats();
    PageCache {
        bytes: stats.used_bytes(),
        hits: stats.read_hits() + stats.write_hits(),
        misses: stats.read_misses() + stats.write_misses(),
        evictions: stats.evictions(),
    }
}
