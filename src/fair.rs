//! Fair turns: a bounded number of slots, shared out among consumers in round robin.
//!
//! Whatever is scarce (threads for long reads, Argon2 runs, DNS look-ups) is taken through a
//! [`FairQueue`]. A consumer that asks for much waits for itself: the next free slot goes to the
//! consumer whose turn it is, not to the request that came first.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

/// The unit among which a resource is shared: the tenant that a request works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Consumer {
    /// An organization by its id, for requests to anything in it, by whichever member.
    Organization(Uuid),
    /// A user by number, for requests that lead into no organization.
    User(u64),
    /// A client address, for requests without a key. Build it with [`Consumer::address`].
    Address(IpAddr),
}

impl Consumer {
    /// The consumer of the operator's commands, which come from this machine.
    pub const OPERATOR: Self = Self::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// The consumer of requests without a key from `address`.
    pub fn address(address: IpAddr) -> Self {
        Self::Address(network(address))
    }
}

/// The part of an address that one client controls: an IPv4 address, or an IPv6 network of 64 bits.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// How long a consumer counts as active after it was noted.
const ACTIVE: Duration = Duration::from_secs(1);

/// The two consumers that were active last: what a share costs is asked of nobody who is alone.
#[derive(Debug)]
pub struct Latest<K>([Option<(K, Instant)>; 2]);

impl<K> Default for Latest<K> {
    fn default() -> Self {
        Self([None, None])
    }
}

impl<K: Copy + PartialEq> Latest<K> {
    /// Notes that `consumer` is active.
    pub fn note(&mut self, consumer: K, now: Instant) {
        let [latest, before] = &mut self.0;
        if latest.is_some_and(|(latest, _)| latest != consumer) {
            *before = *latest;
        }
        *latest = Some((consumer, now));
    }

    /// For how long another consumer still counts as active; none if `consumer` is alone.
    pub fn others_count_for(&self, consumer: K, now: Instant) -> Option<Duration> {
        let others = self.0.iter().flatten().filter(|(other, _)| *other != consumer);
        let left = others.filter_map(|(_, noted)| (*noted + ACTIVE).checked_duration_since(now));
        left.max().filter(|left| !left.is_zero())
    }
}

/// How a [`FairQueue`] shares its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairLimits {
    /// Slots in use at one time.
    pub slots: usize,
    /// Slots that one consumer uses at one time.
    pub slots_each: usize,
    /// Requests of one consumer that wait at one time.
    pub waiting_each: usize,
    /// Requests of all consumers together that wait at one time.
    pub waiting: usize,
    /// How long a request waits; none for as long as its caller does.
    pub longest_wait: Option<Duration>,
}

/// Too many requests wait already, or this one waited too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

/// Slots that consumers take in turns. Clones share the same slots.
#[derive(Clone)]
pub struct FairQueue(Arc<Inner>);

struct Inner {
    limits: FairLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: usize,
    waiting: usize,
    /// Consumers that use a slot or wait for one.
    consumers: HashMap<Consumer, Backlog>,
    /// Consumers that wait and may use one more slot, the next one first.
    ready: VecDeque<Consumer>,
}

#[derive(Default)]
struct Backlog {
    used: usize,
    waiters: VecDeque<oneshot::Sender<Slot>>,
    /// Whether the consumer is in [`State::ready`].
    is_ready: bool,
}

/// A slot in use; dropping it passes the slot on.
pub struct Slot {
    queue: Arc<Inner>,
    consumer: Consumer,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.queue.lock().release(self.consumer, self.queue.limits);
        self.queue.hand_out();
    }
}

impl FairQueue {
    /// A queue over `limits.slots` free slots.
    pub fn new(limits: FairLimits) -> Self {
        Self(Arc::new(Inner { limits, state: Mutex::default() }))
    }

    /// Waits for the consumer's turn. A caller that stops waiting gives its place up.
    ///
    /// # Errors
    /// [`QueueFull`] at once if [`FairLimits::waiting_each`] requests of the consumer wait, or if
    /// [`FairLimits::waiting`] requests wait and no other consumer has more of them; later if a consumer that has
    /// fewer of them needs the place, or after [`FairLimits::longest_wait`].
    pub async fn acquire(&self, consumer: Consumer) -> Result<Slot, QueueFull> {
        let waiter = self.0.lock().enqueue(consumer, self.0.limits)?;
        self.0.hand_out();
        let slot = match self.0.limits.longest_wait {
            Some(longest) => timeout(longest, waiter).await.map_err(|_| QueueFull)?,
            None => waiter.await,
        };
        slot.map_err(|_| QueueFull)
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting
    }

    /// How many slots are in use.
    pub fn used(&self) -> usize {
        self.0.lock().used
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free slots to those who wait. Sends outside the lock: a refused slot is dropped, which takes it.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let next = self.lock().next(self.limits);
            let Some((consumer, waiter)) = next else { return };
            drop(waiter.send(Slot { queue: Arc::clone(self), consumer }));
        }
    }
}

impl State {
    fn enqueue(
        &mut self,
        consumer: Consumer,
        limits: FairLimits,
    ) -> Result<oneshot::Receiver<Slot>, QueueFull> {
        // A request that gets a slot at once does not wait.
        let (most_each, most) = (limits.waiting_each.max(1), limits.waiting.max(1));
        if self.waiting_of(consumer) >= most_each || self.waiting >= most {
            self.forget_abandoned();
        }
        if self.waiting_of(consumer) >= most_each {
            return Err(QueueFull);
        }
        if self.waiting >= most {
            self.make_room_for(consumer)?;
        }
        let (waiter, slot) = oneshot::channel();
        let backlog = self.consumers.entry(consumer).or_default();
        backlog.waiters.push_back(waiter);
        self.waiting += 1;
        self.make_ready(consumer, limits);
        Ok(slot)
    }

    fn waiting_of(&self, consumer: Consumer) -> usize {
        self.consumers.get(&consumer).map_or(0, |backlog| backlog.waiters.len())
    }

    /// Refuses the newest request of the consumer that waits with most, so that one with fewer gets the place.
    fn make_room_for(&mut self, consumer: Consumer) -> Result<(), QueueFull> {
        let own = self.waiting_of(consumer);
        let largest = self.consumers.values_mut().max_by_key(|backlog| backlog.waiters.len());
        let largest = largest.filter(|largest| largest.waiters.len() > own + 1).ok_or(QueueFull)?;
        largest.waiters.pop_back();
        self.waiting -= 1;
        Ok(())
    }

    /// Puts the consumer in line for the next free slot, unless it waits for nothing or has its share.
    fn make_ready(&mut self, consumer: Consumer, limits: FairLimits) {
        if let Some(backlog) = self.consumers.get_mut(&consumer)
            && !backlog.is_ready
            && !backlog.waiters.is_empty()
            && backlog.used < limits.slots_each
        {
            backlog.is_ready = true;
            self.ready.push_back(consumer);
        }
    }

    /// The next one to get a slot, for whom it is counted as used.
    fn next(&mut self, limits: FairLimits) -> Option<(Consumer, oneshot::Sender<Slot>)> {
        while self.used < limits.slots {
            let consumer = self.ready.pop_front()?;
            let Some(backlog) = self.consumers.get_mut(&consumer) else { continue };
            backlog.is_ready = false;
            if backlog.used >= limits.slots_each {
                continue;
            }
            let before = backlog.waiters.len();
            let waiter = loop {
                match backlog.waiters.pop_front() {
                    Some(waiter) if waiter.is_closed() => {}
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
            self.make_ready(consumer, limits);
            return Some((consumer, waiter));
        }
        None
    }

    fn release(&mut self, consumer: Consumer, limits: FairLimits) {
        self.used -= 1;
        if let Some(backlog) = self.consumers.get_mut(&consumer) {
            backlog.used -= 1;
        }
        self.make_ready(consumer, limits);
        self.forget_idle(consumer);
    }

    /// Forgets a consumer that neither uses a slot nor waits.
    fn forget_idle(&mut self, consumer: Consumer) {
        if self.consumers.get(&consumer).is_some_and(Backlog::is_idle) {
            self.consumers.remove(&consumer);
        }
    }

    /// Forgets those who stopped waiting.
    fn forget_abandoned(&mut self) {
        for backlog in self.consumers.values_mut() {
            backlog.waiters.retain(|waiter| !waiter.is_closed());
        }
        self.waiting = self.consumers.values().map(|backlog| backlog.waiters.len()).sum();
        self.consumers.retain(|_, backlog| !backlog.is_idle());
    }
}

impl Backlog {
    /// Whether nothing is known of the consumer. One that is in [`State::ready`] has to stay, or it would be put there
    /// a second time.
    fn is_idle(&self) -> bool {
        self.used == 0 && self.waiters.is_empty() && !self.is_ready
    }
}

#[cfg(test)]
mod tests;
