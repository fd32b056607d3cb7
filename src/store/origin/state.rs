//! What the threads of a store with an origin share: who waits for a fresh state, how the origin answers, and what they count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::base::error::{Error, Result};
use crate::store::disk::engine::{closed, unavailable};
use crate::store::reads::snapshot::Snapshot;

use super::trouble::Troubles;

/// How long a read waits for the origin.
const FRESH_TIMEOUT: Duration = Duration::from_secs(2);

/// Receives a state that is at least as new as the question.
pub type Reader = oneshot::Sender<Result<Arc<Snapshot>>>;

/// What the threads of a store with an origin share.
#[derive(Default)]
pub struct OriginState {
    waiting: Mutex<Waiting>,
    /// Wakes the thread that asks.
    arrived: Condvar,
    /// Wakes pauses when the store is closed.
    closed: Condvar,
    /// Whether reads and writes fail at once, because the origin did not answer for a while.
    is_away: AtomicBool,
    /// Whether the copy has commits that are not on disk.
    pub is_unsynced: AtomicBool,
    /// What keeps the node from serving.
    pub troubles: Troubles,
    /// Whether this process is a node: a command that opens a copy is none.
    pub is_node: AtomicBool,
    /// When the origin last said what is new.
    pub asked: watch::Sender<Option<Instant>>,
    /// When the last heartbeat began that the origin took.
    pub beat: watch::Sender<Option<Instant>>,
}

#[derive(Default)]
struct Waiting {
    readers: Vec<Reader>,
    is_closed: bool,
}

impl OriginState {
    /// Returns a state that has every commit that was acknowledged before the call.
    ///
    /// # Errors
    /// 503 when the origin does not answer in time, or is known to be away.
    pub async fn fresh(&self) -> Result<Arc<Snapshot>> {
        if self.is_away() {
            return Err(away());
        }
        let (reader, answer) = oneshot::channel();
        self.ask(reader)?;
        match timeout(FRESH_TIMEOUT, answer).await {
            Ok(Ok(fresh)) => fresh,
            Ok(Err(_)) | Err(_) => Err(away()),
        }
    }

    /// Does what [`fresh`](Self::fresh) does, on a thread that may block.
    ///
    /// # Errors
    /// 503 when the origin is away.
    pub fn wait_until_fresh(&self) -> Result<Arc<Snapshot>> {
        let (reader, answer) = oneshot::channel();
        self.ask(reader)?;
        answer.blocking_recv().unwrap_or_else(|_| Err(away()))
    }

    fn ask(&self, reader: Reader) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.is_closed {
            return Err(closed());
        }
        waiting.readers.push(reader);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for readers, at most for `limit`, and returns them. Returns `None` after [`close`](Self::close).
    pub fn wait_for_readers(&self, limit: Duration) -> Option<Vec<Reader>> {
        let is_idle = |waiting: &mut Waiting| waiting.readers.is_empty() && !waiting.is_closed;
        let waited = self.arrived.wait_timeout_while(self.waiting(), limit, is_idle);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        (!waiting.is_closed).then(|| std::mem::take(&mut waiting.readers))
    }

    /// Waits for `limit`, also if readers come. Returns whether the store is still open.
    pub fn pause(&self, limit: Duration) -> bool {
        let is_open = |waiting: &mut Waiting| !waiting.is_closed;
        let waited = self.closed.wait_timeout_while(self.waiting(), limit, is_open);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    /// Lets these readers wait for the next answer.
    pub fn put_back(&self, readers: Vec<Reader>) {
        let waiting = readers.into_iter().filter(|reader| !reader.is_closed());
        self.waiting().readers.extend(waiting);
    }

    /// Ends the threads that ask. Readers that wait get 503.
    pub fn close(&self) {
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        waiting.readers = Vec::new();
        drop(waiting);
        self.arrived.notify_all();
        self.closed.notify_all();
    }

    /// Whether the origin is known to be away.
    pub fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Acquire)
    }

    /// Sets whether the origin is away.
    pub fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::Release);
    }

    /// Returns when the origin last said what is new.
    pub fn asked_at(&self) -> Option<Instant> {
        *self.asked.borrow()
    }

    /// Returns until when the origin is known both to answer and to take heartbeats: the time of its last answer or of
    /// the last heartbeat, whichever is earlier.
    pub fn proven_at(&self) -> Option<Instant> {
        self.asked_at().zip(*self.beat.borrow()).map(|(asked, beat)| asked.min(beat))
    }

    /// Waits until the origin takes a heartbeat, unless it took one within `valid_for`.
    pub async fn beats(&self, valid_for: Duration) {
        let is_recent = |beat: &Option<Instant>| beat.is_some_and(|at| at.elapsed() < valid_for);
        // The sender is in `self`, so it is not dropped meanwhile.
        let _ = self.beat.subscribe().wait_for(is_recent).await;
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a request that needs an origin that is away.
pub fn away() -> Error {
    unavailable("the database cannot be reached")
}

/// A call that the origin answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginCall {
    /// A question about what is new, which the store asked for this many readers at once. A store asks for none when it is idle.
    Ask {
        /// How many readers waited for the answer.
        readers: usize,
    },
    /// An attempt to commit a batch, taken or not.
    Commit,
    /// A wait for the right to be next.
    Turn,
}

/// Called on threads of the store after each answered call with the time that it took, so it must be quick.
type Listener = Box<dyn Fn(OriginCall, Duration) + Send + Sync>;

/// What the threads of a store count.
#[derive(Default)]
pub struct OriginStats {
    listener: OnceLock<Listener>,
    numbers: Mutex<OriginMetrics>,
}

impl OriginStats {
    /// Calls `listener` after each answered call from now on. Only the first listener is called.
    pub fn listen(&self, listener: impl Fn(OriginCall, Duration) + Send + Sync + 'static) {
        let _kept = self.listener.set(Box::new(listener));
    }

    /// Returns the numbers, to change them.
    pub fn numbers(&self) -> MutexGuard<'_, OriginMetrics> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a call that began at `begun` and was answered now.
    pub fn note_call(&self, call: OriginCall, begun: Instant) {
        if let Some(listener) = self.listener.get() {
            listener(call, begun.elapsed());
        }
    }
}

/// Numbers about the work with an origin since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OriginMetrics {
    /// Whether the origin answered lately. Known only when the numbers are read.
    pub is_up: bool,
    /// How many batches ran again because another node was first.
    pub overtaken: u64,
    /// How many commits got no answer, so that the store had to ask whether they were done.
    pub unknown: u64,
    /// How often the copy was made from all rows.
    pub copies_made: u64,
    /// How many commits the copy lacked at the last question.
    pub behind: u64,
}
