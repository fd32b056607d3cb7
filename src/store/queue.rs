//! The writer's queue. Each consumer has its own backlog, and the writer takes writes from the backlogs in round robin.
//!
//! If a write turns out to be large during its consumer's cooldown ([`Cooldowns`]), the writer puts it back, into a
//! backlog of large writes. That backlog waits until the cooldown is over; small writes of the consumer continue.
//!
//! Tasks other than writes divide the queue into spans. Such a task runs after all writes that were queued before it, and
//! before all writes that were queued after it.

mod span;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::fair_queue::Consumer;

use super::cooldowns::{Cooldowns, LARGE_WRITE};
use super::engine::RETRY_AFTER;
use super::queued::QueuedWrite;
use super::task::{NextWrite, Task};
use span::{Lane, Span};

/// The maximum number of queued tasks.
pub(super) const MAX_QUEUED: usize = 4096;
/// The maximum number of queued writes of one consumer.
pub(super) const MAX_QUEUED_PER_CONSUMER: usize = MAX_QUEUED / 4;

/// Why a task was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueError {
    /// [`MAX_QUEUED`] tasks are queued.
    Full,
    /// [`MAX_QUEUED_PER_CONSUMER`] writes of the consumer are queued.
    ShareUsed,
    /// The writer has stopped.
    Closed,
}

impl From<QueueError> for Error {
    fn from(why: QueueError) -> Self {
        match why {
            QueueError::Full => Self::unavailable(RETRY_AFTER, "the write queue is full"),
            QueueError::ShareUsed => Self::overloaded(RETRY_AFTER, "too many writes of one tenant"),
            QueueError::Closed => Self::unavailable(RETRY_AFTER, "the data file is closed"),
        }
    }
}

/// The result of looking for another write for the current batch.
pub(super) enum BatchNext {
    /// The next write of the batch.
    Write(NextWrite),
    /// No queued write is due.
    Empty,
    /// The batch is complete: the next task is not a write, or all consumers with queued writes have used their share.
    End,
}

/// The sending end. Dropping it closes the queue; the writer then runs the queued tasks and stops.
pub(super) struct Sender(Arc<Inner>);

/// The receiving end. Dropping it drops all queued tasks.
pub(super) struct Receiver(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    spans: VecDeque<Span>,
    queued: usize,
    queued_per_consumer: HashMap<Option<Consumer>, usize>,
    closed: bool,
    /// The number of queued tasks that wakes the writer. `None` if it does not wait.
    wakes_at: Option<usize>,
    cooldowns: Cooldowns,
}

/// Creates an empty queue.
pub(super) fn queue() -> (Sender, Receiver) {
    let inner = Arc::<Inner>::default();
    (Sender(Arc::clone(&inner)), Receiver(inner))
}

impl Sender {
    /// Queues a write of `consumer`. If the queue is full, the write replaces the newest write of the consumer with the
    /// most queued writes, and the replaced write is returned.
    pub(super) fn send_write(
        &self,
        consumer: Option<Consumer>,
        write: Box<dyn QueuedWrite>,
    ) -> Result<Option<Box<dyn QueuedWrite>>, QueueError> {
        let mut state = self.0.lock();
        let displaced = match state.require_room() {
            Err(QueueError::Full) => Some(state.evict_newest(consumer)?),
            room => room.map(|()| None)?,
        };
        let own = state.queued_per_consumer.entry(consumer).or_default();
        if consumer.is_some() && *own >= MAX_QUEUED_PER_CONSUMER {
            return Err(QueueError::ShareUsed);
        }
        *own += 1;
        state.queued += 1;
        state.last_span().push(Lane { consumer, is_large: false }, write);
        if state.wakes_at.is_some_and(|enough| state.queued >= enough) {
            self.0.wake(state);
        }
        Ok(displaced)
    }

    /// Queues a task that is not a write.
    pub(super) fn send(&self, task: Task) -> Result<(), QueueError> {
        self.0.lock().require_room()?;
        self.send_always(task);
        Ok(())
    }

    /// Queues a task that is not a write, even if the queue is full.
    pub(super) fn send_always(&self, task: Task) {
        let mut state = self.0.lock();
        if !state.closed {
            state.queued += 1;
            state.last_span().then = Some(task);
            self.0.wake(state);
        }
    }

    /// Returns the number of queued tasks.
    pub(super) fn len(&self) -> usize {
        self.0.lock().queued
    }

    #[cfg(test)]
    pub(super) fn with_cooldowns<T>(&self, with: impl FnOnce(&mut Cooldowns) -> T) -> T {
        with(&mut self.0.lock().cooldowns)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        self.0.wake(state);
    }
}

impl Receiver {
    /// Waits for the next task. Returns `None` if the queue is closed and empty.
    pub(super) fn recv(&self) -> Option<Task> {
        let mut state = self.0.lock();
        loop {
            if let Some(task) = state.next() {
                return Some(task);
            }
            if state.closed {
                return None;
            }
            let rest = state.next_due().unwrap_or(Duration::MAX);
            state = self.0.wait(state, 1, rest);
        }
    }

    /// Waits until `enough` writes are due or a task is queued that is not a write, but at most for `limit`.
    pub(super) fn wait_for(&self, enough: usize, limit: Duration) {
        let state = self.0.lock();
        let missing = enough.saturating_sub(state.due());
        if missing > 0 && state.spans.iter().all(|span| span.then.is_none()) {
            drop(self.0.wait(state, missing, limit));
        }
    }

    /// Returns the next task, or `None` if no task is due.
    pub(super) fn try_recv(&self) -> Option<Task> {
        self.0.lock().next()
    }

    /// Returns the next write for the batch, of a consumer for which `may` returns true.
    pub(super) fn next_of_batch(&self, may: impl Fn(Option<Consumer>) -> bool) -> BatchNext {
        self.0.lock().next_of_batch(may)
    }

    /// Puts back a large write, which then runs after its consumer's cooldown.
    pub(super) fn put_back(&self, consumer: Option<Consumer>, write: Box<dyn QueuedWrite>) {
        let mut state = self.0.lock();
        state.queued += 1;
        *state.queued_per_consumer.entry(consumer).or_default() += 1;
        state.first_span().push(Lane { consumer, is_large: true }, write);
    }

    /// Records that a write of `consumer` changed `records` records. If the write was large, its cooldown starts.
    pub(super) fn end_write(&self, consumer: Option<Consumer>, records: usize) {
        if let Some(consumer) = consumer
            && records > LARGE_WRITE
        {
            self.0.lock().cooldowns.end(consumer, records, Instant::now());
        }
    }

    /// Whether the queue is closed and empty.
    pub(super) fn is_closed(&self) -> bool {
        let state = self.0.lock();
        state.closed && state.queued == 0
    }

    /// Returns the number of queued tasks, without the large writes that wait for a cooldown.
    pub(super) fn due(&self) -> usize {
        self.0.lock().due()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let left = {
            let mut state = self.0.lock();
            state.closed = true;
            std::mem::take(&mut state.spans)
        };
        drop(left);
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `more` further tasks are queued, but at most for `limit`.
    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        more: usize,
        limit: Duration,
    ) -> MutexGuard<'s, State> {
        state.wakes_at = Some(state.queued + more);
        let waited = self.arrived.wait_timeout(state, limit);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.wakes_at = None;
        state
    }

    /// Wakes the writer if it waits.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let waits = state.wakes_at.take().is_some();
        drop(state);
        if waits {
            self.arrived.notify_one();
        }
    }
}

impl State {
    fn require_room(&self) -> Result<(), QueueError> {
        match self {
            Self { closed: true, .. } => Err(QueueError::Closed),
            Self { queued: MAX_QUEUED.., .. } => Err(QueueError::Full),
            _ => Ok(()),
        }
    }

    /// Removes the newest write of the consumer with the most queued writes, to make room for a write of `consumer`.
    fn evict_newest(
        &mut self,
        consumer: Option<Consumer>,
    ) -> Result<Box<dyn QueuedWrite>, QueueError> {
        let own = self.queued_per_consumer.get(&consumer).copied().unwrap_or(0);
        let tenants = self.queued_per_consumer.iter().filter(|(consumer, _)| consumer.is_some());
        let (largest, queued) =
            tenants.max_by_key(|(_, queued)| **queued).ok_or(QueueError::Full)?;
        if *queued <= own + 1 {
            return Err(QueueError::Full);
        }
        let largest = *largest;
        let newest = self.spans.iter_mut().rev().find_map(|span| span.pop_newest(largest));
        let newest = newest.ok_or(QueueError::Full)?;
        self.uncount(largest);
        Ok(newest)
    }

    /// Updates the counts after a write of `consumer` left the queue.
    fn uncount(&mut self, consumer: Option<Consumer>) {
        self.queued -= 1;
        if let Some(own) = self.queued_per_consumer.get_mut(&consumer) {
            *own -= 1;
            if *own == 0 {
                self.queued_per_consumer.remove(&consumer);
            }
        }
    }

    /// Returns the span whose writes run now.
    fn first_span(&mut self) -> &mut Span {
        match self.spans.pop_front() {
            Some(first) => self.spans.push_front_mut(first),
            None => self.spans.push_front_mut(Span::default()),
        }
    }

    /// Returns the span that the next queued task belongs to.
    fn last_span(&mut self) -> &mut Span {
        let open = match self.spans.pop_back() {
            Some(last) if last.then.is_none() => last,
            closed => {
                self.spans.extend(closed);
                Span::default()
            }
        };
        self.spans.push_back_mut(open)
    }

    fn next(&mut self) -> Option<Task> {
        match self.next_of_batch(|_| true) {
            BatchNext::Write(turn) => Some(Task::Write(turn)),
            BatchNext::Empty => None,
            BatchNext::End => {
                let task = self.spans.pop_front()?.then?;
                self.queued -= 1;
                Some(task)
            }
        }
    }

    /// Returns the time until the next queued write is due, or `None` if no write is queued.
    fn next_due(&self) -> Option<Duration> {
        let now = Instant::now();
        let turns = self.spans.front()?.turns.iter();
        let rest = |lane: &Lane| self.cooldown_of(lane.consumer, now).filter(|_| lane.is_large);
        turns.map(|lane| rest(lane).unwrap_or_default()).min()
    }

    /// Returns the remaining cooldown of `consumer`. There are no cooldowns if a task waits for the writes of the span, or
    /// after the queue was closed.
    fn cooldown_of(&self, consumer: Option<Consumer>, now: Instant) -> Option<Duration> {
        let is_last = self.spans.front().is_some_and(|span| span.then.is_none()) && !self.closed;
        consumer.filter(|_| is_last).and_then(|consumer| self.cooldowns.remaining(consumer, now))
    }

    /// Returns the number of queued tasks, without the large writes that wait for a cooldown.
    fn due(&self) -> usize {
        let now = Instant::now();
        let rests = |lane: &Lane| lane.is_large && self.cooldown_of(lane.consumer, now).is_some();
        let large = self.spans.iter().flat_map(|span| &span.backlogs);
        let resting = large.filter(|(lane, _)| rests(lane)).map(|(_, backlog)| backlog.len());
        self.queued.saturating_sub(resting.sum())
    }

    fn next_of_batch(&mut self, may: impl Fn(Option<Consumer>) -> bool) -> BatchNext {
        let Some(span) = self.spans.front() else { return BatchNext::Empty };
        if span.turns.is_empty() {
            return if span.then.is_some() { BatchNext::End } else { BatchNext::Empty };
        }
        let now = Instant::now();
        let rests = |lane: &Lane| self.cooldown_of(lane.consumer, now).is_some();
        let waits = |lane: &Lane| lane.is_large && rests(lane);
        let Some(at) = span.turns.iter().position(|lane| may(lane.consumer) && !waits(lane)) else {
            return if span.turns.iter().any(waits) { BatchNext::Empty } else { BatchNext::End };
        };
        let is_cooling_down = span.turns.get(at).is_some_and(rests);
        let Some((consumer, write)) = self.spans.front_mut().and_then(|span| span.pop(at)) else {
            return BatchNext::End;
        };
        self.uncount(consumer);
        if let Some(consumer) = consumer {
            self.cooldowns.begin(consumer, now);
        }
        BatchNext::Write(NextWrite { consumer, write, is_cooling_down })
    }
}
