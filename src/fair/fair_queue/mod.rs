//! Fair sharing: a bounded number of slots, given to consumers in round-robin order.
//!
//! A [`FairQueue`] guards each scarce resource, such as threads for long reads and DNS look-ups. The next free slot
//! goes to the consumer whose turn it is, and not to the oldest request. A consumer with many requests therefore
//! delays only itself. The queue of the writer uses the [`Backlogs`] alone.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

/// The unit among which resources are shared: the tenant that a request works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Consumer {
    /// An organization, for every request of any member to data in it.
    Organization(Uuid),
    /// A user, for requests outside organizations.
    User(u64),
    /// A client address, for requests without a key. Create it with [`Consumer::from_address`].
    Address(IpAddr),
}

impl Consumer {
    /// Returns the consumer of requests without a key from `address`.
    pub fn from_address(address: IpAddr) -> Self {
        Self::Address(client_network(address))
    }
}

/// Returns the network that one client controls: an IPv4 address, or an IPv6 /64 network.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// The time for which a consumer counts as active.
const ACTIVE_FOR: Duration = Duration::from_secs(1);

/// The two most recently active consumers. Callers skip the cost of sharing while a single consumer is active.
#[derive(Debug)]
pub struct RecentConsumers<K>([Option<(K, Instant)>; 2]);

impl<K> Default for RecentConsumers<K> {
    fn default() -> Self {
        Self([None, None])
    }
}

impl<K: Copy + PartialEq> RecentConsumers<K> {
    /// Records that `consumer` is active.
    pub fn note(&mut self, consumer: K, now: Instant) {
        let [latest, before] = &mut self.0;
        if latest.is_some_and(|(latest, _)| latest != consumer) {
            *before = *latest;
        }
        *latest = Some((consumer, now));
    }

    /// Returns how long another consumer still counts as active, or `None` if `consumer` is alone.
    pub fn others_active_for(&self, consumer: K, now: Instant) -> Option<Duration> {
        let others = self.0.iter().flatten().filter(|(other, _)| *other != consumer);
        let left =
            others.filter_map(|(_, noted)| (*noted + ACTIVE_FOR).checked_duration_since(now));
        left.max().filter(|left| !left.is_zero())
    }
}

/// The limits of a [`FairQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairQueueLimits {
    /// The maximum number of slots in use.
    pub slots: usize,
    /// The maximum number of slots in use by one consumer.
    pub slots_per_consumer: usize,
    /// The maximum number of waiting requests of one consumer.
    pub waiting_per_consumer: usize,
    /// The maximum number of waiting requests of all consumers.
    pub waiting: usize,
    /// The longest wait of a request. `None` means without limit.
    pub max_wait: Option<Duration>,
}

/// The error for a request that finds too many others waiting, or that has waited too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

/// A queue for a bounded number of slots. Clones share the slots.
#[derive(Clone)]
pub struct FairQueue(Arc<Inner>);

struct Inner {
    max_wait: Option<Duration>,
    backlogs: Mutex<Backlogs<oneshot::Sender<Slot>>>,
}

/// A slot in use. Dropping it gives it to the next request.
pub struct Slot {
    queue: Arc<Inner>,
    consumer: Consumer,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.queue.lock().release(self.consumer);
        self.queue.grant_free_slots();
    }
}

impl FairQueue {
    /// Creates a queue with `limits.slots` free slots.
    pub fn new(limits: FairQueueLimits) -> Self {
        let backlogs = Mutex::new(Backlogs::new(limits, oneshot::Sender::is_closed));
        Self(Arc::new(Inner { max_wait: limits.max_wait, backlogs }))
    }

    /// Waits for the consumer's turn. Dropping the future cancels the request.
    ///
    /// # Errors
    /// [`QueueFull`] at once if [`FairQueueLimits::waiting_per_consumer`] requests of the consumer wait, or if
    /// [`FairQueueLimits::waiting`] requests wait and no other consumer has more of them. Later if a consumer with
    /// fewer requests needs the place, or after [`FairQueueLimits::max_wait`].
    pub async fn acquire(&self, consumer: Consumer) -> Result<Slot, QueueFull> {
        let (waiter, granted) = oneshot::channel();
        drop(self.0.lock().enqueue(consumer, waiter)?);
        self.0.grant_free_slots();
        let slot = match self.0.max_wait {
            Some(longest) => timeout(longest, granted).await.map_err(|_| QueueFull)?,
            None => granted.await,
        };
        slot.map_err(|_| QueueFull)
    }

    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting()
    }

    /// Returns the number of slots in use.
    pub fn used(&self) -> usize {
        self.0.lock().used
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Backlogs<oneshot::Sender<Slot>>> {
        self.backlogs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free slots to waiting requests. Sends them outside the lock, because dropping an unwanted slot takes the
    /// lock.
    fn grant_free_slots(self: &Arc<Self>) {
        loop {
            let next = self.lock().take_next();
            let Some((consumer, waiter)) = next else { return };
            drop(waiter.send(Slot { queue: Arc::clone(self), consumer }));
        }
    }
}

/// The requests that wait for a bounded number of slots. A free slot goes to a request of the consumer whose turn it is.
pub struct Backlogs<W> {
    limits: FairQueueLimits,
    /// Whether a request was cancelled.
    is_cancelled: fn(&W) -> bool,
    used: usize,
    waiting: usize,
    /// Consumers that use a slot or wait for one.
    consumers: HashMap<Consumer, Backlog<W>>,
    /// Consumers that wait and may use another slot, in order of their turns.
    ready: VecDeque<Consumer>,
}

struct Backlog<W> {
    used: usize,
    waiters: VecDeque<W>,
    /// Whether the consumer is in [`Backlogs::ready`].
    is_ready: bool,
}

impl<W> Backlogs<W> {
    /// Creates empty backlogs. A request for which `is_cancelled` returns true gets no slot.
    pub fn new(limits: FairQueueLimits, is_cancelled: fn(&W) -> bool) -> Self {
        let (consumers, ready) = (HashMap::new(), VecDeque::new());
        Self { limits, is_cancelled, used: 0, waiting: 0, consumers, ready }
    }

    /// Adds a request. If the backlogs are full, it displaces the newest request of the consumer with the most waiting
    /// requests, which is returned.
    ///
    /// # Errors
    /// [`QueueFull`] if [`FairQueueLimits::waiting_per_consumer`] requests of the consumer wait, or if
    /// [`FairQueueLimits::waiting`] requests wait and no other consumer has more of them.
    pub fn enqueue(&mut self, consumer: Consumer, waiter: W) -> Result<Option<W>, QueueFull> {
        // A request that gets a slot at once is queued too, so each limit is at least one.
        let most_each = self.limits.waiting_per_consumer.max(1);
        let most = self.limits.waiting.max(1);
        if self.waiting_by(consumer) >= most_each || self.waiting >= most {
            self.forget_cancelled();
        }
        if self.waiting_by(consumer) >= most_each {
            return Err(QueueFull);
        }
        let displaced = if self.waiting >= most { Some(self.evict_for(consumer)?) } else { None };
        let new = || Backlog { used: 0, waiters: VecDeque::new(), is_ready: false };
        self.consumers.entry(consumer).or_insert_with(new).waiters.push_back(waiter);
        self.waiting += 1;
        self.mark_ready(consumer);
        Ok(displaced)
    }

    /// Returns the number of waiting requests.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    fn waiting_by(&self, consumer: Consumer) -> usize {
        self.consumers.get(&consumer).map_or(0, |backlog| backlog.waiters.len())
    }

    /// Removes the newest request of the consumer with the most waiting requests, in favour of a consumer with fewer.
    fn evict_for(&mut self, consumer: Consumer) -> Result<W, QueueFull> {
        let own = self.waiting_by(consumer);
        let largest = self.consumers.values_mut().max_by_key(|backlog| backlog.waiters.len());
        let largest = largest.filter(|largest| largest.waiters.len() > own + 1).ok_or(QueueFull)?;
        let newest = largest.waiters.pop_back().ok_or(QueueFull)?;
        self.waiting -= 1;
        Ok(newest)
    }

    /// Adds the consumer to the line for the next free slot, if it waits and has not used up its slots.
    fn mark_ready(&mut self, consumer: Consumer) {
        if let Some(backlog) = self.consumers.get_mut(&consumer)
            && !backlog.is_ready
            && !backlog.waiters.is_empty()
            && backlog.used < self.limits.slots_per_consumer
        {
            backlog.is_ready = true;
            self.ready.push_back(consumer);
        }
    }

    /// Removes the next request in line, and counts its slot as used.
    pub fn take_next(&mut self) -> Option<(Consumer, W)> {
        while self.used < self.limits.slots {
            let consumer = self.ready.pop_front()?;
            let Some(backlog) = self.consumers.get_mut(&consumer) else { continue };
            backlog.is_ready = false;
            if backlog.used >= self.limits.slots_per_consumer {
                continue;
            }
            let before = backlog.waiters.len();
            let waiter = loop {
                match backlog.waiters.pop_front() {
                    Some(waiter) if (self.is_cancelled)(&waiter) => {}
                    found => break found,
                }
            };
            self.waiting -= before - backlog.waiters.len();
            let Some(waiter) = waiter else {
                self.forget_idle(consumer);
                continue;
            };
            backlog.used += 1;
            self.used += 1;
            self.mark_ready(consumer);
            return Some((consumer, waiter));
        }
        None
    }

    /// Removes all waiting requests, and counts their slots as used, also beyond the limits. The consumers take turns.
    pub fn take_all(&mut self) -> Vec<(Consumer, W)> {
        let mut taken = Vec::with_capacity(self.waiting);
        while taken.len() < self.waiting {
            for (consumer, backlog) in &mut self.consumers {
                if let Some(waiter) = backlog.waiters.pop_front() {
                    backlog.used += 1;
                    taken.push((*consumer, waiter));
                }
            }
        }
        self.used += taken.len();
        self.waiting = 0;
        taken
    }

    /// Frees a slot of the consumer.
    pub fn release(&mut self, consumer: Consumer) {
        self.used -= 1;
        if let Some(backlog) = self.consumers.get_mut(&consumer) {
            backlog.used -= 1;
        }
        self.mark_ready(consumer);
        self.forget_idle(consumer);
    }

    /// Removes a consumer that neither uses a slot nor waits.
    fn forget_idle(&mut self, consumer: Consumer) {
        if self.consumers.get(&consumer).is_some_and(Backlog::is_idle) {
            self.consumers.remove(&consumer);
        }
    }

    fn forget_cancelled(&mut self) {
        for backlog in self.consumers.values_mut() {
            backlog.waiters.retain(|waiter| !(self.is_cancelled)(waiter));
        }
        self.waiting = self.consumers.values().map(|backlog| backlog.waiters.len()).sum();
        self.consumers.retain(|_, backlog| !backlog.is_idle());
    }
}

impl<W> Backlog<W> {
    /// Whether the consumer can be removed. A consumer in [`Backlogs::ready`] must stay, or it could be added there
    /// twice.
    fn is_idle(&self) -> bool {
        self.used == 0 && self.waiters.is_empty() && !self.is_ready
    }
}

#[cfg(test)]
mod tests;
