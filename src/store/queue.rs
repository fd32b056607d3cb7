//! The writer's queue: each consumer has a backlog of its own, and the writer takes from the backlogs in round robin.
//! A write that turns out to be large while its consumer rests ([`Rests`]) is queued again, in a backlog of large writes
//! that waits until the rest is over; small writes of the consumer go on.
//!
//! Other tasks than writes divide the queue into spans: a task runs when every write that was queued before it
//! has run, and before every write that was queued after it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::fair::Consumer;

use super::queued::Write;
use super::rests::{LARGE, Rests};
use super::writer::Task;

/// How many tasks may wait for the writer.
pub(super) const QUEUE: usize = 4096;
/// How many writes of one consumer may wait for the writer.
pub(super) const QUEUE_EACH: usize = QUEUE / 4;

/// Whose a backlog is, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Lane {
    /// None for the writes of the service and its operator, which only [`QUEUE`] bounds.
    consumer: Option<Consumer>,
    /// Whether its writes are known to be large.
    is_large: bool,
}

/// A write whose turn it is.
pub(super) struct Turn {
    pub(super) consumer: Option<Consumer>,
    pub(super) write: Box<dyn Write>,
    /// Whether the consumer rests: if the write is large, it is to be queued again.
    pub(super) rests: bool,
}

/// Why a task is not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// [`QUEUE`] tasks wait.
    Full,
    /// [`QUEUE_EACH`] writes of the consumer wait.
    ShareUsed,
    /// The writer has ended.
    Closed,
}

/// What the writer finds when it looks for another write of its batch.
pub(super) enum Next {
    /// A write that may join the batch.
    Write(Turn),
    /// Nothing is queued that is due.
    Nothing,
    /// The batch ends: the next task is not a write, or no consumer that has writes queued may add one more.
    End,
}

/// The sending end. Dropping it closes the queue: the writer ends when it has run what is queued.
pub(super) struct Sender(Arc<Inner>);

/// The receiving end. Dropping it drops what is queued.
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
    queued_each: HashMap<Option<Consumer>, usize>,
    closed: bool,
    /// Whether the writer sleeps until a task arrives.
    receiving: bool,
    rests: Rests,
}

/// Writes, and the task that runs after them.
#[derive(Default)]
struct Span {
    backlogs: HashMap<Lane, VecDeque<Box<dyn Write>>>,
    /// The lanes that have a backlog, the next one first.
    turns: VecDeque<Lane>,
    then: Option<Task>,
}

/// An empty queue.
pub(super) fn queue() -> (Sender, Receiver) {
    let inner = Arc::<Inner>::default();
    (Sender(Arc::clone(&inner)), Receiver(inner))
}

impl Sender {
    /// Queues a write of `consumer`. Returns the write that lost its place to it: if the queue is full, that is the newest
    /// of the consumer that has most writes queued.
    pub(super) fn send_write(
        &self,
        consumer: Option<Consumer>,
        write: Box<dyn Write>,
    ) -> Result<Option<Box<dyn Write>>, Refused> {
        let mut state = self.0.lock();
        let displaced = match state.require_room() {
            Err(Refused::Full) => Some(state.displace(consumer)?),
            room => room.map(|()| None)?,
        };
        let own = state.queued_each.entry(consumer).or_default();
        if consumer.is_some() && *own >= QUEUE_EACH {
            return Err(Refused::ShareUsed);
        }
        *own += 1;
        state.queued += 1;
        state.last_span().push(Lane { consumer, is_large: false }, write);
        self.0.wake(state);
        Ok(displaced)
    }

    /// Queues a task that is not a write.
    pub(super) fn send(&self, task: Task) -> Result<(), Refused> {
        self.0.lock().require_room()?;
        self.send_always(task);
        Ok(())
    }

    /// Does the same, however many tasks wait.
    pub(super) fn send_always(&self, task: Task) {
        let mut state = self.0.lock();
        if !state.closed {
            state.queued += 1;
            state.last_span().then = Some(task);
            self.0.wake(state);
        }
    }

    /// How many tasks wait.
    pub(super) fn len(&self) -> usize {
        self.0.lock().queued
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
    /// Waits for the next task. None when the queue is closed and nothing is left.
    pub(super) fn recv(&self) -> Option<Task> {
        let mut state = self.0.lock();
        loop {
            if let Some(task) = state.next() {
                return Some(task);
            }
            if state.closed {
                return None;
            }
            let rest = state.rest().unwrap_or(Duration::MAX);
            state.receiving = true;
            let waited = self.0.arrived.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.receiving = false;
        }
    }

    /// The next task, if there is one.
    pub(super) fn try_recv(&self) -> Option<Task> {
        self.0.lock().next()
    }

    /// The next write of a consumer that `may` add one to the batch.
    pub(super) fn next_of_batch(&self, may: impl Fn(Option<Consumer>) -> bool) -> Next {
        self.0.lock().next_of_batch(may)
    }

    /// Queues a large write again, for when its consumer has rested.
    pub(super) fn put_back(&self, consumer: Option<Consumer>, write: Box<dyn Write>) {
        let mut state = self.0.lock();
        state.queued += 1;
        *state.queued_each.entry(consumer).or_default() += 1;
        state.first_span().push(Lane { consumer, is_large: true }, write);
    }

    /// Notes that a write of `consumer` changed so many records.
    pub(super) fn wrote(&self, consumer: Option<Consumer>, records: usize) {
        if let Some(consumer) = consumer
            && records > LARGE
        {
            self.0.lock().rests.end(consumer, records, Instant::now());
        }
    }

    /// Whether nobody can queue a task any more, and nothing is left.
    pub(super) fn is_closed(&self) -> bool {
        let state = self.0.lock();
        state.closed && state.queued == 0
    }

    /// How many tasks are queued, without the writes of consumers that rest.
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

    fn wake(&self, state: MutexGuard<'_, State>) {
        let sleeps = state.receiving;
        drop(state);
        if sleeps {
            self.arrived.notify_one();
        }
    }
}

impl State {
    fn require_room(&self) -> Result<(), Refused> {
        match self {
            Self { closed: true, .. } => Err(Refused::Closed),
            Self { queued: QUEUE.., .. } => Err(Refused::Full),
            _ => Ok(()),
        }
    }

    /// Takes the newest write of the consumer that has most of them out of the queue, for one of `consumer`.
    fn displace(&mut self, consumer: Option<Consumer>) -> Result<Box<dyn Write>, Refused> {
        let own = self.queued_each.get(&consumer).copied().unwrap_or(0);
        let tenants = self.queued_each.iter().filter(|(consumer, _)| consumer.is_some());
        let (largest, queued) = tenants.max_by_key(|(_, queued)| **queued).ok_or(Refused::Full)?;
        if *queued <= own + 1 {
            return Err(Refused::Full);
        }
        let largest = *largest;
        let newest = self.spans.iter_mut().rev().find_map(|span| span.pop_newest(largest));
        let newest = newest.ok_or(Refused::Full)?;
        self.took(largest);
        Ok(newest)
    }

    /// Counts a write of `consumer` that left the queue.
    fn took(&mut self, consumer: Option<Consumer>) {
        self.queued -= 1;
        if let Some(own) = self.queued_each.get_mut(&consumer) {
            *own -= 1;
            if *own == 0 {
                self.queued_each.remove(&consumer);
            }
        }
    }

    /// The span whose writes run now.
    fn first_span(&mut self) -> &mut Span {
        match self.spans.pop_front() {
            Some(first) => self.spans.push_front_mut(first),
            None => self.spans.push_front_mut(Span::default()),
        }
    }

    /// The span that what comes now belongs to.
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
            Next::Write(turn) => Some(Task::Write(turn)),
            Next::Nothing => None,
            Next::End => {
                let task = self.spans.pop_front()?.then?;
                self.queued -= 1;
                Some(task)
            }
        }
    }

    /// How long until a write that is queued is due; none if none is queued.
    fn rest(&self) -> Option<Duration> {
        let now = Instant::now();
        let turns = self.spans.front()?.turns.iter();
        let rest = |lane: &Lane| self.rest_of(lane.consumer, now).filter(|_| lane.is_large);
        turns.map(|lane| rest(lane).unwrap_or_default()).min()
    }

    /// How long `consumer` rests before its next write runs. What waits behind the writes of a span waits for no rest.
    fn rest_of(&self, consumer: Option<Consumer>, now: Instant) -> Option<Duration> {
        let is_last = self.spans.front().is_some_and(|span| span.then.is_none()) && !self.closed;
        consumer.filter(|_| is_last).and_then(|consumer| self.rests.left(consumer, now))
    }

    /// How many tasks are queued, without large writes of consumers that rest.
    fn due(&self) -> usize {
        let now = Instant::now();
        let rests = |lane: &Lane| lane.is_large && self.rest_of(lane.consumer, now).is_some();
        let large = self.spans.iter().flat_map(|span| &span.backlogs);
        let resting = large.filter(|(lane, _)| rests(lane)).map(|(_, backlog)| backlog.len());
        self.queued.saturating_sub(resting.sum())
    }

    fn next_of_batch(&mut self, may: impl Fn(Option<Consumer>) -> bool) -> Next {
        let Some(span) = self.spans.front() else { return Next::Nothing };
        if span.turns.is_empty() {
            return if span.then.is_some() { Next::End } else { Next::Nothing };
        }
        let now = Instant::now();
        let rests = |lane: &Lane| self.rest_of(lane.consumer, now).is_some();
        let waits = |lane: &Lane| lane.is_large && rests(lane);
        let Some(at) = span.turns.iter().position(|lane| may(lane.consumer) && !waits(lane)) else {
            return if span.turns.iter().any(waits) { Next::Nothing } else { Next::End };
        };
        let rests = span.turns.get(at).is_some_and(rests);
        let Some((consumer, write)) = self.spans.front_mut().and_then(|span| span.pop(at)) else {
            return Next::End;
        };
        self.took(consumer);
        if let Some(consumer) = consumer {
            self.rests.begin(consumer, now);
        }
        Next::Write(Turn { consumer, write, rests })
    }
}

impl Span {
    fn push(&mut self, lane: Lane, write: Box<dyn Write>) {
        let backlog = self.backlogs.entry(lane).or_default();
        if backlog.is_empty() {
            self.turns.push_back(lane);
        }
        backlog.push_back(write);
    }

    /// The newest write of `consumer`: a small one, if there is one.
    fn pop_newest(&mut self, consumer: Option<Consumer>) -> Option<Box<dyn Write>> {
        let lanes = [false, true].map(|is_large| Lane { consumer, is_large });
        let lane = lanes.into_iter().find(|lane| self.backlogs.contains_key(lane))?;
        let backlog = self.backlogs.get_mut(&lane)?;
        let newest = backlog.pop_back();
        if backlog.is_empty() {
            self.backlogs.remove(&lane);
            self.turns.retain(|turn| *turn != lane);
        }
        newest
    }

    /// The next write of the lane at this place among the turns.
    fn pop(&mut self, at: usize) -> Option<(Option<Consumer>, Box<dyn Write>)> {
        let lane = self.turns.remove(at)?;
        let backlog = self.backlogs.get_mut(&lane)?;
        let write = backlog.pop_front()?;
        if backlog.is_empty() {
            self.backlogs.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        Some((lane.consumer, write))
    }
}
