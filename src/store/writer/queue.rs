//! The writer's queue: a channel of tasks, and the writes that wait for a place in it.
//!
//! A consumer has few writes in the channel. Its other writes wait, and the next one follows when the writer has run one.
//! So consumers take turns, however many writes one of them queues.
//!
//! A write that changes many records delays all other writes until its commit. If several consumers write, such a write
//! keeps its slot for a cooldown. So the large writes of one consumer take a few hundredths of the writer's time. Its small
//! writes go on while it has another slot.
//!
//! A task that uses the file as a whole runs after all writes that were queued before it: they go into the channel ahead of
//! it. Any other task goes into the channel at once. Reads wait for some of these, so they do not wait for all writes of a
//! consumer.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::base::error::{Error, Result};
use crate::fair::fair_queue::{Backlogs, Consumer, FairQueueLimits, QueueFull, RecentConsumers};
use crate::store::disk::engine::{RETRY_AFTER, closed, unavailable};

use super::task::{NextWrite, QueuedWrite, Task};

/// A channel with this many tasks takes no more but writes of consumers.
pub const MAX_QUEUED: usize = 4096;
/// The limits on the writes of consumers. A write has a slot from its admission to the channel until it has run.
pub const LIMITS: FairQueueLimits = FairQueueLimits {
    slots: usize::MAX,
    slots_per_consumer: 4,
    waiting_per_consumer: MAX_QUEUED / 4,
    waiting: MAX_QUEUED,
    max_wait: None,
};
/// The cooldown for each record that a large write changed: about a hundred times as long as the change took.
const COOLDOWN_PER_RECORD: Duration = Duration::from_millis(10);

/// The sending end. Dropping it closes the queue; the writer then runs the tasks in the channel and stops.
pub struct Sender(Arc<Inner>);

/// The receiving end. Dropping it drops all queued tasks.
pub struct Receiver(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    arrived: Condvar,
}

struct State {
    channel: VecDeque<Task>,
    waiting: Backlogs<QueuedWrite>,
    /// The consumer whose write runs. The write has its slot until the writer looks for the next task.
    running: Option<Consumer>,
    /// The consumers that queued a write lately.
    writers: RecentConsumers<Consumer>,
    closed: bool,
    /// The number of queued tasks that wakes the writer. `None` if it does not wait.
    wakes_at: Option<usize>,
}

/// Creates an empty queue.
pub fn queue() -> (Sender, Receiver) {
    let state = State {
        channel: VecDeque::new(),
        // The writer passes over cancelled writes. Here they would be dropped under the lock, perhaps with the last
        // `Sender`, which takes it.
        waiting: Backlogs::new(LIMITS, |_| false),
        running: None,
        writers: RecentConsumers::default(),
        closed: false,
        wakes_at: None,
    };
    let inner = Arc::new(Inner { state: Mutex::new(state), arrived: Condvar::new() });
    (Sender(Arc::clone(&inner)), Receiver(inner))
}

fn too_many_writes() -> Error {
    Error::overloaded(RETRY_AFTER, "too many writes wait")
}

impl Sender {
    /// Queues a write. Without a consumer it goes into the channel at once. If too many writes wait, the write displaces the
    /// newest write of the consumer with the most waiting writes, which fails with 503.
    ///
    /// # Errors
    /// 503 if the channel or the consumer's share of the waiting writes is full, or if the writer has stopped.
    pub fn send_write(&self, consumer: Option<Consumer>, write: QueuedWrite) -> Result<()> {
        let mut state = self.0.lock();
        let mut displaced = None;
        if let Some(consumer) = consumer {
            state.require_open()?;
            state.writers.note(consumer, Instant::now());
            let waiting = state.waiting.enqueue(consumer, write);
            displaced = waiting.map_err(|QueueFull| too_many_writes())?;
            state.admit();
        } else {
            state.require_room()?;
            state.channel.push_back(Task::Write(NextWrite { consumer, write }));
        }
        // A write in the place of another makes the queue no longer, but may be the only one that is next.
        if displaced.is_some() || state.wakes_at.is_some_and(|enough| state.queued() >= enough) {
            self.0.wake(state);
        } else {
            drop(state);
        }
        if let Some(write) = displaced {
            write.answer(Err(too_many_writes()));
        }
        Ok(())
    }

    /// Queues a task that is not a write.
    ///
    /// # Errors
    /// 503 if the channel is full, or if the writer has stopped.
    pub fn send(&self, task: Task) -> Result<()> {
        self.0.lock().require_room()?;
        self.send_always(task);
        Ok(())
    }

    /// Queues a task that is not a write, even if the channel is full.
    pub fn send_always(&self, task: Task) {
        let mut state = self.0.lock();
        if !state.closed {
            use Task::{Close, ExclusiveFile, Quiesce, Replace};
            if matches!(task, Quiesce(_) | ExclusiveFile(_) | Replace(_) | Close) {
                state.admit_all();
            }
            state.channel.push_back(task);
            self.0.wake(state);
        }
    }

    /// Returns the number of queued tasks.
    pub fn len(&self) -> usize {
        self.0.lock().queued()
    }

    /// Notes that `consumer` queued a write at this time.
    #[cfg(test)]
    pub fn note_writer(&self, consumer: Consumer, at: Instant) {
        self.0.lock().writers.note(consumer, at);
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
    /// Waits for the next task. Returns `None` if the queue is closed and the channel is empty.
    pub fn recv(&self) -> Option<Task> {
        let mut state = self.0.lock();
        loop {
            if let Some(task) = state.next() {
                return Some(task);
            }
            if state.closed {
                return None;
            }
            state = self.0.wait(state, 1, Duration::MAX);
        }
    }

    /// Returns the next task, or `None` if the channel is empty.
    pub fn try_recv(&self) -> Option<Task> {
        self.0.lock().next()
    }

    /// Returns the next task if it is a write. If the channel is empty, waits before until `enough` tasks are queued, at most
    /// for the time `patience`, which becomes less by the wait.
    pub(super) fn next_write(&self, enough: usize, patience: &mut Duration) -> Option<NextWrite> {
        let mut state = self.0.lock();
        state.end_running();
        if state.channel.is_empty() && enough > 0 && !patience.is_zero() {
            let begun = Instant::now();
            state = self.0.wait(state, enough, *patience);
            *patience = patience.saturating_sub(begun.elapsed());
        }
        if !matches!(state.channel.front(), Some(Task::Write(_))) {
            return None;
        }
        match state.next() {
            Some(Task::Write(next)) => Some(next),
            _ => None,
        }
    }

    /// Keeps the slot of the running write, which changed `records` records, for a cooldown. Returns `None` if the write has
    /// no consumer.
    pub(super) fn begin_cooldown(&self, records: usize) -> Option<Cooldown> {
        let consumer = self.0.lock().running.take()?;
        let rest = COOLDOWN_PER_RECORD.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX));
        Some(Cooldown { queue: Arc::clone(&self.0), consumer, until: Instant::now() + rest })
    }

    /// Whether the queue is closed and the channel is empty.
    pub fn is_closed(&self) -> bool {
        let state = self.0.lock();
        state.closed && state.channel.is_empty()
    }

    /// Returns the number of queued tasks, or 0 if the channel is empty. In that case, all queued writes wait for the
    /// end of a cooldown.
    pub fn due(&self) -> usize {
        let state = self.0.lock();
        if state.channel.is_empty() { 0 } else { state.queued() }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let left = {
            let mut state = self.0.lock();
            state.closed = true;
            state.admit_all();
            std::mem::take(&mut state.channel)
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
        state.wakes_at = Some(state.queued() + more);
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
    fn require_open(&self) -> Result<()> {
        if self.closed { Err(closed()) } else { Ok(()) }
    }

    fn require_room(&self) -> Result<()> {
        self.require_open()?;
        if self.channel.len() >= MAX_QUEUED {
            return Err(unavailable("the write queue is full"));
        }
        Ok(())
    }

    fn queued(&self) -> usize {
        self.channel.len() + self.waiting.waiting()
    }

    /// Moves waiting writes into the channel while there are slots for them.
    fn admit(&mut self) {
        while let Some((consumer, write)) = self.waiting.take_next() {
            self.push(consumer, write);
        }
    }

    /// Moves all waiting writes into the channel.
    fn admit_all(&mut self) {
        for (consumer, write) in self.waiting.take_all() {
            self.push(consumer, write);
        }
    }

    fn push(&mut self, consumer: Consumer, write: QueuedWrite) {
        self.channel.push_back(Task::Write(NextWrite { consumer: Some(consumer), write }));
    }

    /// Frees the slot of the write that ran, unless a cooldown keeps it.
    fn end_running(&mut self) {
        if let Some(consumer) = self.running.take() {
            self.release(consumer);
        }
    }

    fn release(&mut self, consumer: Consumer) {
        self.waiting.release(consumer);
        self.admit();
    }

    /// Removes the next task from the channel.
    fn next(&mut self) -> Option<Task> {
        self.end_running();
        let task = self.channel.pop_front()?;
        if let Task::Write(next) = &task {
            self.running = next.consumer;
        }
        Some(task)
    }
}

/// The slot of a large write after the write. Dropping this frees it.
pub struct Cooldown {
    queue: Arc<Inner>,
    consumer: Consumer,
    until: Instant,
}

impl Cooldown {
    /// Waits until the cooldown is over, or until no other consumer writes.
    pub async fn wait(self) {
        while let Some(rest) = self.remaining(Instant::now()) {
            sleep(rest).await;
        }
    }

    /// Returns the time until the cooldown is over, or until no other consumer counts as active, whichever comes first.
    /// Returns `None` if one of the two is so now.
    fn remaining(&self, now: Instant) -> Option<Duration> {
        let rest = self.until.checked_duration_since(now)?;
        let active = self.queue.lock().writers.others_active_for(self.consumer, now)?;
        Some(active.min(rest)).filter(|left| !left.is_zero())
    }
}

impl Drop for Cooldown {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.release(self.consumer);
        self.queue.wake(state);
    }
}
