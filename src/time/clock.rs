//! Clocks: that of the system, and one that tests set.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::Timestamp;

/// The longest sleep without a look at the system clock, which may be set: a machine may start with a wrong time, or resume.
const MAX_SLEEP: Duration = Duration::from_mins(1);

/// The source of the current time. Rules do not use it: they receive the time as an argument.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The system clock.
    #[default]
    System,
    /// A clock that tests set.
    Manual(ManualClock),
}

/// A clock that changes only when a test advances it. Clones share the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<watch::Sender<Timestamp>>);

impl ManualClock {
    /// Creates a clock that shows `moment`.
    pub fn at(moment: Timestamp) -> Self {
        Self(Arc::new(watch::Sender::new(moment)))
    }

    /// Advances the clock, and wakes the tasks whose time has come.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|moment| *moment = moment.plus(by));
    }

    /// Sets the clock, also to an earlier time, as an operator or a time server does.
    pub fn set(&self, moment: Timestamp) {
        self.0.send_replace(moment);
    }
}

impl Clock {
    /// Waits until the clock shows `moment`, which is `at_most` away when it is computed. If it is further away, the clock was
    /// set back since, and the wait is over.
    pub async fn wait_until(&self, moment: Timestamp, at_most: Duration) {
        let is_over = |now: Timestamp| !moment.is_end_of_current(at_most, now);
        match self {
            Self::System => {
                let mut now = self.now();
                while !is_over(now) {
                    let left = u64::try_from(moment.0.saturating_sub(now.0)).unwrap_or(0);
                    tokio::time::sleep(Duration::from_micros(left).min(MAX_SLEEP)).await;
                    now = self.now();
                }
            }
            Self::Manual(clock) => {
                // `self` holds the sender, so the wait cannot fail.
                let _ = clock.0.subscribe().wait_for(|shown| is_over(*shown)).await;
            }
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        match self {
            #[expect(clippy::disallowed_methods, reason = "the only reader of the system clock")]
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
            Self::Manual(clock) => *clock.0.borrow(),
        }
    }

    /// Starts to measure a time.
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch { clock: self.clone(), begun: Instant::now(), shown: self.now() }
    }
}

/// Measures a time. The result does not change if the system clock is set meanwhile. Of a manual clock, it is the time by which
/// the clock was advanced.
#[derive(Debug, Clone)]
pub struct Stopwatch {
    clock: Clock,
    begun: Instant,
    shown: Timestamp,
}

impl Stopwatch {
    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        match &self.clock {
            Clock::System => self.begun.elapsed(),
            Clock::Manual(_) => {
                let micros = self.clock.now().0.saturating_sub(self.shown.0);
                Duration::from_micros(micros.unsigned_abs())
            }
        }
    }
}
