//! Rate limits per key, per address for requests without a valid key, per address before the key is checked, and per
//! address and user for sign-in mails. The `governor` crate does the arithmetic: a full quota is available at first and is
//! replenished evenly.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock as RateClock;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::base::error::Error;
use crate::base::time::{Clock, Stopwatch};
use crate::config::RateLimit;
use crate::fair::fair_queue::client_network;
use crate::ids::{ApiKeyId, SessionId, UserId};

/// The number of buckets for addresses, which bounds the memory for any number of addresses.
const ADDRESS_BUCKETS: u64 = 1 << 16;

/// The number of requests between two removals of entries with a full quota. A request adds at most one entry, so the
/// table stays small and the cost of a removal is spread over these requests.
const CLEANUP_INTERVAL: u64 = 1 << 13;

/// The number of sign-in mails that an address may ask for within an hour.
const MAIL_REQUESTS: u32 = 10;
/// The number of sign-in mails to a user that one site may cause within an hour.
const MAILS_OF_SITE: u32 = 3;
/// The number of sign-in mails to a user that all sites together may cause within an hour.
const MAILS_TO_USER: u32 = 9;

/// The configured rate limits, of which there are none by default, and those of sign-in mails.
pub struct RateLimits {
    keys: Quotas,
    peers: Quotas,
    mail_requests: Quotas,
    mails_of_sites: Quotas,
    mails_to_users: Quotas,
    hasher: RandomState,
}

/// The sign-in mails that count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MailClass {
    /// The user that gets the mails.
    pub user: UserId,
    /// Whether the user has signed in in the browsers that ask. So strangers use up nothing of what these browsers get.
    pub is_known_browser: bool,
}

/// The subject of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RateLimitKey {
    /// The API key of the request.
    Key(ApiKeyId),
    /// The console session of the request, if it is bound to no key.
    Session(SessionId),
    /// The bucket of the client's address.
    Bucket(u64),
    /// The mails that a site causes.
    MailsOfSite(MailClass, IpAddr),
    /// The mails that all sites cause.
    MailsToUser(MailClass),
}

impl RateLimits {
    /// Creates the limits: `keys` for each key and for each address without a valid key, `peers` for each address.
    /// Every rate of a list applies.
    pub fn new(keys: &[RateLimit], peers: &[RateLimit], clock: &Clock) -> Self {
        Self {
            keys: Quotas::new(keys, clock),
            peers: Quotas::new(peers, clock),
            mail_requests: Quotas::per_hour(MAIL_REQUESTS, clock),
            mails_of_sites: Quotas::per_hour(MAILS_OF_SITE, clock),
            mails_to_users: Quotas::per_hour(MAILS_TO_USER, clock),
            hasher: RandomState::new(),
        }
    }

    /// Counts a request of a key. Returns the state of the quota, or `None` without limits.
    ///
    /// # Errors
    /// 429 if the request exceeds a limit.
    pub fn check_key(&self, key: ApiKeyId) -> Result<Option<RateLimitStatus>, Error> {
        self.keys.check(&RateLimitKey::Key(key))
    }

    /// Counts a request in a session that is bound to no key, with the limits of keys. Returns the state of the quota,
    /// or `None` without limits.
    ///
    /// # Errors
    /// 429 if the request exceeds a limit.
    pub fn check_session(&self, session: SessionId) -> Result<Option<RateLimitStatus>, Error> {
        self.keys.check(&RateLimitKey::Session(session))
    }

    /// Whether there is a limit per key.
    pub fn limits_keys(&self) -> bool {
        !self.keys.limiters.is_empty()
    }

    /// Counts a request without a valid key against its address, with the limits of keys. Returns the state of the
    /// quota, or `None` without limits. Calls `address` only if there is a limit.
    ///
    /// # Errors
    /// 429 if the request exceeds a limit.
    pub fn check_keyless(
        &self,
        address: impl FnOnce() -> IpAddr,
    ) -> Result<Option<RateLimitStatus>, Error> {
        if !self.limits_keys() {
            return Ok(None);
        }
        self.keys.check(&RateLimitKey::Bucket(self.bucket(address())))
    }

    /// Counts a request of an address. All addresses of an IPv6 /64 network count as one, because one client has them
    /// all.
    ///
    /// # Errors
    /// 429 if the request exceeds a limit.
    pub fn check_peer(&self, address: IpAddr) -> Result<(), Error> {
        if self.peers.limiters.is_empty() {
            return Ok(());
        }
        self.peers.check(&RateLimitKey::Bucket(self.bucket(address))).map(drop)
    }

    /// Counts a request for a sign-in mail against the address of the client.
    ///
    /// # Errors
    /// 429 if the request exceeds the limit.
    pub fn check_mail_request(&self, address: IpAddr) -> Result<(), Error> {
        self.mail_requests.check(&RateLimitKey::Bucket(self.bucket(address))).map(drop)
    }

    /// Counts a sign-in mail that a client at this address causes. What the site may not cause uses up nothing of what
    /// others may.
    ///
    /// # Errors
    /// 429 if the mail exceeds a limit.
    pub fn check_mail(&self, class: MailClass, address: IpAddr) -> Result<(), Error> {
        self.mails_of_sites.check(&RateLimitKey::MailsOfSite(class, site(address)))?;
        self.mails_to_users.check(&RateLimitKey::MailsToUser(class)).map(drop)
    }

    fn bucket(&self, address: IpAddr) -> u64 {
        self.hasher.hash_one(client_network(address)) % ADDRESS_BUCKETS
    }
}

/// Returns the network that one subscriber may control: an IPv4 address, or an IPv6 /48 network.
fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
    }
}

/// The state of the quota with the fewest requests left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// The size of the quota, in requests.
    pub limit: u32,
    /// The requests left.
    pub remaining: u32,
    /// Seconds until the quota is full. In a 429: seconds until the next request is allowed.
    pub reset: u64,
}

type KeyedLimiter = RateLimiter<
    RateLimitKey,
    DashMapStateStore<RateLimitKey>,
    Stopwatch,
    StateInformationMiddleware,
>;

/// Several rate limits that all apply.
struct Quotas {
    limiters: Vec<(KeyedLimiter, Stopwatch)>,
    requests: AtomicU64,
}

impl Quotas {
    fn new(rates: &[RateLimit], clock: &Clock) -> Self {
        let quota = |rate: &RateLimit| {
            let quota =
                Quota::with_period(rate.per / rate.requests.get())?.allow_burst(rate.requests);
            let ticks = clock.stopwatch();
            Some((KeyedLimiter::new(quota, DashMapStateStore::default(), ticks.clone()), ticks))
        };
        Self { limiters: rates.iter().filter_map(quota).collect(), requests: AtomicU64::new(0) }
    }

    fn per_hour(requests: u32, clock: &Clock) -> Self {
        let rate = NonZeroU32::new(requests)
            .map(|requests| RateLimit { requests, per: Duration::from_hours(1) });
        Self::new(rate.as_slice(), clock)
    }

    /// Removes entries with a full quota, because a client without an entry has a full quota too.
    fn forget_idle(&self) {
        for (counter, _) in &self.limiters {
            counter.retain_recent();
            counter.shrink_to_fit();
        }
    }

    fn check(&self, key: &RateLimitKey) -> Result<Option<RateLimitStatus>, Error> {
        if self.limiters.is_empty() {
            return Ok(None);
        }
        if self.requests.fetch_add(1, Ordering::Relaxed) % CLEANUP_INTERVAL == CLEANUP_INTERVAL - 1
        {
            self.forget_idle();
        }
        let mut least: Option<RateLimitStatus> = None;
        for (counter, ticks) in &self.limiters {
            let state = counter.check_key(key).map_err(|until| {
                let wait = until.wait_time_from(ticks.now());
                Error::throttled(until.quota().burst_size().get(), seconds(wait))
            })?;
            let (quota, remaining) = (state.quota(), state.remaining_burst_capacity());
            let limit = quota.burst_size().get();
            let reset = seconds(quota.replenish_interval() * limit.saturating_sub(remaining));
            if least.is_none_or(|least| remaining < least.remaining) {
                least = Some(RateLimitStatus { limit, remaining, reset });
            }
        }
        Ok(least)
    }
}

/// Rounds up to whole seconds.
fn seconds(time: std::time::Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl RateClock for Stopwatch {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.elapsed().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::{ManualClock, Timestamp};

    #[test]
    fn idle_rate_limit_keys_are_removed_and_used_ones_kept() {
        let hand = ManualClock::at(Timestamp::from_micros(1_735_787_045_000_000));
        let rate = "3/h".parse().expect("valid rate");
        let quotas = Quotas::new(&[rate], &Clock::Manual(hand.clone()));
        let known = || quotas.limiters.iter().map(|(counter, _)| counter.len()).sum::<usize>();
        let (mut next, zero) = (1_u64.., RateLimitKey::Bucket(0));
        let mut ask_as_others = |requests: u64| {
            for _ in 0..requests {
                let key = next.next().expect("unlimited");
                quotas.check(&RateLimitKey::Bucket(key)).expect("first request of a key");
            }
        };
        for _ in 0..3 {
            quotas.check(&zero).expect("within quota");
        }
        ask_as_others(CLEANUP_INTERVAL - 4);
        assert_eq!(known(), 8189);
        hand.advance(Duration::from_mins(41));
        ask_as_others(1);
        assert_eq!(known(), 2, "the requesting key, and key 0, whose quota is not full yet");
        for left in [1, 0] {
            let status = quotas.check(&zero).expect("two requests are replenished");
            assert_eq!(status.map(|status| status.remaining), Some(left));
        }
        assert_eq!(quotas.check(&zero).expect_err("quota is used up").status(), 429);
        for _ in 0..3 {
            ask_as_others(CLEANUP_INTERVAL);
            hand.advance(Duration::from_mins(41));
        }
        assert!(known() <= 8192 + 2, "{}", known());
    }
}
