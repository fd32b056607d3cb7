//! How often somebody may ask: a key, and before any key is looked at an address (decisions §5). The maths are
//! governor's: a quota is there whole at first and comes back evenly.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use governor::clock::Clock as RateClock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::config::Rate;
use crate::error::Error;
use crate::ids::ApiKeyId;
use crate::time::Clock;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// How many buckets addresses are counted in: however many there are, they take only so much memory.
const BUCKETS: u64 = 1 << 16;

/// The limits that the service was asked to keep; by default none.
pub struct Limits {
    keys: Quotas<ApiKeyId>,
    peers: Quotas<u64>,
    hasher: RandomState,
}

impl Limits {
    /// These quotas for each key, and for each address; all of a list hold at once.
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
        self.keys.count(&key)
    }

    /// Counts a request from an address. Those of one IPv6 network of 64 bits are one, for a client has them all.
    ///
    /// # Errors
    /// 429 where it is one too many.
    pub fn count_peer(&self, address: IpAddr) -> Result<(), Error> {
        if self.peers.0.is_empty() {
            return Ok(());
        }
        let bucket = self.hasher.hash_one(client(address)) % BUCKETS;
        self.peers.count(&bucket).map(drop)
    }
}

fn client(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
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
struct Quotas<K: Hash + Eq + Clone>(Vec<(Counter<K>, Ticks)>);

impl<K: Hash + Eq + Clone> Quotas<K> {
    fn new(rates: &[Rate], clock: &Clock) -> Self {
        let quota = |rate: &Rate| {
            let quota = Quota::with_period(rate.per / rate.count.get())?.allow_burst(rate.count);
            let ticks = Ticks::new(clock.clone());
            Some((Counter::new(quota, DashMapStateStore::default(), ticks.clone()), ticks))
        };
        Self(rates.iter().filter_map(quota).collect())
    }

    fn count(&self, key: &K) -> Result<Option<Standing>, Error> {
        let mut least: Option<Standing> = None;
        for (counter, ticks) in &self.0 {
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
