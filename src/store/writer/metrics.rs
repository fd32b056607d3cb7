//! Numbers about the work of the store. The store only counts; its callers publish the numbers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase};
use tokio::sync::oneshot;

use crate::base::error::Result;
use crate::store::origin::state::{OriginCall, OriginMetrics};
use crate::store::record::byte_usage::Owner;

use super::Store;
use super::task::{Task, flatten_reply};

/// The time for which a heartbeat of a shared database proves that it takes writes.
const BEAT_VALID_FOR: Duration = Duration::from_secs(5);
/// The time for which an answer of the origin shows that it is up. Without readers, a store asks once a second.
const UP_FOR: Duration = Duration::from_secs(5);

/// A batch of writes that was committed.
#[derive(Debug, Clone, Copy)]
pub struct Commit {
    /// How many writes the batch contained, including refused ones.
    pub writes: usize,
    /// How long the commit took.
    pub took: Duration,
}

/// Called on the writer thread after each commit, so it must be quick.
type Listener = Box<dyn Fn(Commit) + Send + Sync>;

/// State that the writer thread shares with its observers.
#[derive(Default)]
pub struct WriterStats {
    listener: OnceLock<Listener>,
    refused: AtomicU64,
    /// When the last commit completed; `None` if there was none since the file was closed.
    committed: Mutex<Option<Instant>>,
    is_busy: AtomicBool,
}

/// Clears the flag when the work ends, also by a panic.
struct BusyGuard<'w>(&'w AtomicBool);

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl WriterStats {
    /// Runs work on the writer thread that is not a write and takes time proportional to the size of the
    /// file.
    pub(super) fn run_busy<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_busy.store(true, Ordering::Release);
        let _ends = BusyGuard(&self.is_busy);
        work()
    }

    pub(super) fn note_commit(&self, commit: Commit) {
        self.note(Some(Instant::now()));
        if let Some(listener) = self.listener.get() {
            listener(commit);
        }
    }

    /// Counts a write that failed because of a full queue, a closed file, a failed commit, or a failed read
    /// of the file. `written` is an outer error unless the rule itself failed. An overload error of a rule is
    /// not counted.
    pub fn note_refusal<T>(&self, written: &Result<Result<T>>) {
        let refused = match written {
            Err(_) => true,
            Ok(Err(ruled)) => ruled.status() == 503 && !ruled.is_overload(),
            Ok(Ok(_)) => false,
        };
        if refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes when the last commit completed; `None` when the file is closed.
    pub(super) fn note(&self, moment: Option<Instant>) {
        *self.committed.lock().unwrap_or_else(PoisonError::into_inner) = moment;
    }
}

/// Numbers about the store.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreMetrics {
    /// The size of the data file in bytes.
    pub bytes: u64,
    /// How many writes are waiting in the queue.
    pub queued: usize,
    /// How many writes failed since the store was opened, because of a full queue, a closed file or a failed
    /// commit.
    pub refused: u64,
    /// Numbers about the content of the file; `None` while it is closed.
    pub records: Option<RecordCounts>,
}

/// Numbers about the content of the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordCounts {
    /// How many values all tables contain, including index entries.
    pub values: u64,
    /// How many organizations store more bytes than a given limit.
    pub large_organizations: u64,
    /// The most bytes that one organization stores.
    pub largest_organization: u64,
}

/// Statistics of redb's page cache. All are 0 without the feature `cache-metrics`. The counters restart at 0
/// whenever the file is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageCache {
    /// The size of the cached pages in bytes.
    pub bytes: usize,
    /// How many reads and writes found their page in the cache.
    pub hits: u64,
    /// How many pages were read from the file.
    pub misses: u64,
    /// How many pages were evicted.
    pub evictions: u64,
}

impl Store {
    /// Calls `listener` after each commit from now on. It runs on the writer thread, so it must be quick. The
    /// store has one listener: only the first call has an effect.
    #[doc(hidden)]
    pub fn on_commit(&self, listener: impl Fn(Commit) + Send + Sync + 'static) {
        let _kept = self.shared.stats.listener.set(Box::new(listener));
    }

    /// Returns when the last commit completed, or `None` if there was none since the file was opened.
    /// Of a shared database it is when it last both answered and took a heartbeat.
    pub(crate) fn committed_at(&self) -> Option<Instant> {
        if let Some(origin) = &self.shared.origin {
            return origin.state.proven_at();
        }
        *self.shared.stats.committed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether writes are waiting for a copy, a compaction or a restore of the whole file.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.stats.is_busy.load(Ordering::Acquire)
    }

    /// Returns numbers about the store, and counts the organizations that store more than `large` bytes.
    /// Makes a system call, so do not call it on a thread that serves requests.
    #[doc(hidden)]
    pub fn metrics(&self, large: u64) -> StoreMetrics {
        StoreMetrics {
            bytes: self.path.metadata().map_or(0, |data| data.len()),
            queued: self.queue.len(),
            refused: self.shared.stats.refused.load(Ordering::Relaxed),
            records: self.records(large).ok(),
        }
    }

    fn records(&self, bytes: u64) -> Result<RecordCounts> {
        let snapshot = self.snapshot()?;
        let (mut large_organizations, mut largest_organization) = (0, 0);
        Owner::each_organization(&snapshot, |stored| {
            large_organizations += u64::from(stored > bytes);
            largest_organization = stored.max(largest_organization);
        })?;
        Ok(RecordCounts { large_organizations, largest_organization, values: snapshot.values()? })
    }

    /// Calls `listener` after each call that the origin answered, from now on. It runs on threads of the store, so it must be
    /// quick. The store has one listener: only the first call has an effect. A data file has no origin.
    pub(crate) fn on_origin_call(
        &self,
        listener: impl Fn(OriginCall, Duration) + Send + Sync + 'static,
    ) {
        if let Some(origin) = &self.shared.origin {
            origin.stats.listen(listener);
        }
    }

    /// Returns numbers about the work with the origin, or `None` for a data file.
    pub(crate) fn origin_metrics(&self) -> Option<OriginMetrics> {
        let origin = self.shared.origin.as_ref()?;
        let answered_lately = origin.state.asked_at().is_some_and(|at| at.elapsed() < UP_FOR);
        let is_up = !origin.state.is_away() && answered_lately;
        Some(OriginMetrics { is_up, ..*origin.stats.numbers() })
    }

    /// Returns statistics of the page cache. Waits for the writer thread, so it may take as long as a commit.
    ///
    /// # Errors
    /// 503 when the queue is full or the file is closed.
    pub(crate) async fn page_cache(&self) -> Result<PageCache> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Task::Inspect(Box::new(move |database| {
            let _ = reply.send(page_cache_of(database));
            Ok(())
        })))?;
        flatten_reply(answer.await)
    }

    /// Commits an empty transaction and returns once it is on disk, to prove that the store can write. Of a shared database,
    /// waits for an answer and a heartbeat instead.
    ///
    /// # Errors
    /// 503 when the queue is full, the file is closed, or the commit failed.
    #[doc(hidden)]
    pub async fn probe_commit(&self) -> Result<()> {
        if let Some(origin) = &self.shared.origin {
            origin.state.fresh().await?;
            origin.state.beats(BEAT_VALID_FOR).await;
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        self.enqueue(Task::EmptyCommit(reply))?;
        flatten_reply(answer.await)
    }
}

fn page_cache_of(database: &Database) -> PageCache {
    let stats = database.cache_stats();
    PageCache {
        bytes: stats.used_bytes(),
        hits: stats.read_hits() + stats.write_hits(),
        misses: stats.read_misses() + stats.write_misses(),
        evictions: stats.evictions(),
    }
}
