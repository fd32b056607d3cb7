//! How often somebody may ask: a key, an address that presents no right key, and, before any key is looked at, any
//! address. The maths are governor's: a quota is there whole at first and comes back evenly.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use governor::clock::Clock as RateClock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::config::Rate;
use crate::error::Error;
use crate::fair::network;
use crate::ids::ApiKeyId;
use crate::time::Clock;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// How many buckets addresses are counted in: however many there are, they take only so much memory.
const BUCKETS: u64 = 1 << 16;

/// After how many requests those are forgotten whose quota is whole again. A request adds one at the most, so that they
/// stay few, and what looking through them costs is spread over as many requests.
const FORGET_EVERY: u64 = 1 << 13;

/// The limits that the service was asked to keep; by default none.
pub struct Limits {
    keys: Quotas<Counted>,
    peers: Quotas<u64>,
    hasher: RandomState,
}

/// What `--rate-limit` counts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    /// The key of the request.
    Key(ApiKeyId),
    /// The bucket of the client's address, for a request without a right key.
    Bucket(u64),
}

impl Limits {
    /// The quotas `keys` for each key and for each address without a right key, and `peers` for each address. All
    /// quotas of a list hold at once.
    pub fn new(keys: &[Rate], peers: &[Rate], clock: &Clock) -> Self {
        Self {
            keys: Quotas::new(keys, clock),
            peers: Quotas::new(peers, clock),
            hasher: RandomState::new(),
        }
    }

    /// Counts a request of a key; answers where it stands, if there is a limit.
    ///
    /// # Errors
    /// 429 where it is one too many.
    pub fn count_key(&self, key: ApiKeyId) -> Result<Option<Standing>, Error> {
        self.keys.count(&Counted::Key(key))
    }

    /// Whether keys, and addresses without a right key, have a limit.
    pub fn limits_keys(&self) -> bool {
        !self.keys.counters.is_empty()
    }

    /// Counts a request without a right key by its address, under the quotas of keys; answers where the address
    /// stands, if there is a limit. Looks for the address only then.
    ///
    /// # Errors
    /// 429 where it is one too many.
    pub fn count_keyless(
        &self,
        address: impl FnOnce() -> IpAddr,
    ) -> Result<Option<Standing>, Error> {
        if !self.limits_keys() {
            return Ok(None);
        }
        self.keys.count(&Counted::Bucket(self.bucket(address())))
    }

    /// Counts a request from an address. Those of one IPv6 network of 64 bits are one, for a client has them all.
    ///
    /// # Errors
    /// 429 where it is one too many.
    pub fn count_peer(&self, address: IpAddr) -> Result<(), Error> {
        if self.peers.counters.is_empty() {
            return Ok(());
        }
        self.peers.count(&self.bucket(address)).map(drop)
    }

    fn bucket(&self, address: IpAddr) -> u64 {
        self.hasher.hash_one(network(address)) % BUCKETS
    }
}

/// Where somebody stands with the quota of which the least is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The quota.
    pub limit: u32,
    /// How many of it are left.
    pub remaining: u32,
    /// Seconds until it is whole again, rounded up to whole requests; of a refusal, until the next may come.
    pub reset: u64,
}

impl Standing {
    /// Tells the client.
    pub fn write(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(self.reset));
    }
}

type Counter<K> = RateLimiter<K, DashMapStateStore<K>, Ticks, StateInformationMiddleware>;

/// Quotas that hold at once.
struct Quotas<K: Hash + Eq + Clone> {
    counters: Vec<(Counter<K>, Ticks)>,
    counted: AtomicU64,
}

impl<K: Hash + Eq + Clone> Quotas<K> {
    fn new(rates: &[Rate], clock: &Clock) -> Self {
        let quota = |rate: &Rate| {
            let quota = Quota::with_period(rate.per / rate.count.get())?.allow_burst(rate.count);
            let ticks = Ticks::new(clock.clone());
            Some((Counter::new(quota, DashMapStateStore::default(), ticks.clone()), ticks))
        };
        Self { counters: rates.iter().filter_map(quota).collect(), counted: AtomicU64::new(0) }
    }

    /// Whoever has the whole quota is as well off as somebody unknown.
    fn forget_idle(&self) {
        for (counter, _) in &self.counters {
            counter.retain_recent();
            counter.shrink_to_fit();
        }
    }

    fn count(&self, key: &K) -> Result<Option<Standing>, Error> {
        if self.counters.is_empty() {
            return Ok(None);
        }
        if self.counted.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            self.forget_idle();
        }
        let mut least: Option<Standing> = None;
        for (counter, ticks) in &self.counters {
            let state = counter.check_key(key).map_err(|until| {
                let wait = until.wait_time_from(ticks.now());
                Error::throttled(until.quota().burst_size().get(), seconds(wait))
            })?;
            let (quota, remaining) = (state.quota(), state.remaining_burst_capacity());
            let limit = quota.burst_size().get();
            let reset = seconds(quota.replenish_interval() * limit.saturating_sub(remaining));
            if least.is_none_or(|least| remaining < least.remaining) {
                least = Some(Standing { limit, remaining, reset });
            }
        }
        Ok(least)
    }
}

/// Whole seconds, none too few.
fn seconds(time: std::time::Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// The passage of time: it never goes back, as the time of day may.
#[derive(Debug, Clone)]
struct Ticks {
    start: Instant,
    clock: Clock,
}

impl Ticks {
    fn new(clock: Clock) -> Self {
        Self { start: Instant::now(), clock }
    }
}

impl RateClock for Ticks {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        match &self.clock {
            Clock::System => self.start.elapsed().into(),
            Clock::Manual(_) => {
                Nanos::new(self.clock.now().micros().unsigned_abs().saturating_mul(1000))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time::{ManualClock, Timestamp};

    #[test]
    fn who_has_asked_nothing_for_long_is_forgotten_and_who_waits_is_not() {
        let hand = ManualClock::at(Timestamp::from_micros(1_735_787_045_000_000));
        let rate = "3/h".parse().expect("a rate");
        let quotas = Quotas::new(&[rate], &Clock::Manual(hand.clone()));
        let known = || quotas.counters.iter().map(|(counter, _)| counter.len()).sum::<usize>();
        let mut next = 1_u64..;
        let mut ask_as_others = |requests: u64| {
            for _ in 0..requests {
                let key = next.next().expect("another key");
                quotas.count(&key).expect("the first of a key");
            }
        };
        for _ in 0..3 {
            quotas.count(&0).expect("within the quota");
        }
        ask_as_others(FORGET_EVERY - 4);
        assert_eq!(known(), 8189);
        hand.advance(Duration::from_mins(41));
        ask_as_others(1);
        assert_eq!(known(), 2, "the one who asks, and key 0, whose quota is not whole again");
        for left in [1, 0] {
            let standing = quotas.count(&0).expect("two came back");
            assert_eq!(standing.map(|standing| standing.remaining), Some(left));
        }
        assert_eq!(quotas.count(&0).expect_err("no more").status(), 429);
        for _ in 0..3 {
            ask_as_others(FORGET_EVERY);
            hand.advance(Duration::from_mins(41));
        }
        assert!(known() <= 8192 + 2, "{}", known());
    }
}
