//! Cooldowns after large writes. A write that changes many records delays all other writes until its commit. If
//! several consumers write, a consumer waits after a large write before its next large write. So the large writes of
//! one consumer take about a hundredth of the writer's time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::fair_queue::{Consumer, RecentConsumers};

/// A write is large if it changes more records than this.
pub(super) const LARGE_WRITE: usize = 100;
/// The cooldown for each record that a large write changed: about a hundred times as long as the change took.
const COOLDOWN_PER_RECORD: Duration = Duration::from_millis(10);
/// The number of stored cooldowns at which expired ones are removed.
const MAX_UNPRUNED: usize = 64;

/// The cooldown of each consumer, and the consumers that wrote recently.
#[derive(Default)]
pub(super) struct Cooldowns {
    until: HashMap<Consumer, Instant>,
    latest: RecentConsumers<Consumer>,
}

impl Cooldowns {
    /// Records that a write of `consumer` starts.
    pub(super) fn begin(&mut self, consumer: Consumer, now: Instant) {
        self.latest.note(consumer, now);
    }

    /// Starts the cooldown of `consumer` after a write that changed `records` records.
    pub(super) fn end(&mut self, consumer: Consumer, records: usize, now: Instant) {
        if self.until.len() >= MAX_UNPRUNED {
            self.until.retain(|_, until| *until > now);
        }
        let rest = COOLDOWN_PER_RECORD.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX));
        if let Some(until) = now.checked_add(rest) {
            self.until.insert(consumer, until);
        }
    }

    /// Returns how long the cooldown of `consumer` still lasts. Returns `None` if it is over, or if no other consumer
    /// writes.
    pub(super) fn remaining(&self, consumer: Consumer, now: Instant) -> Option<Duration> {
        let rest = self.until.get(&consumer)?.checked_duration_since(now)?;
        let active = self.latest.others_active_for(consumer, now)?;
        Some(active.min(rest)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: Consumer = Consumer::User(1);
    const OTHER: Consumer = Consumer::User(2);

    #[test]
    fn large_write_causes_a_cooldown_while_another_consumer_writes() {
        let (mut rests, now) = (Cooldowns::default(), Instant::now());
        rests.begin(GREEDY, now);
        rests.end(GREEDY, 500, now);
        assert_eq!(rests.remaining(GREEDY, now), None, "no other consumer writes");
        let later = now + Duration::from_secs(2);
        rests.begin(OTHER, later);
        assert_eq!(
            rests.remaining(GREEDY, later),
            Some(Duration::from_secs(1)),
            "the cooldown ends when the other consumer is no longer active"
        );
        assert_eq!(rests.remaining(OTHER, later), None);
        let last = now + Duration::from_millis(4_900);
        rests.begin(OTHER, last);
        assert_eq!(rests.remaining(GREEDY, last), Some(Duration::from_millis(100)));
        assert_eq!(rests.remaining(GREEDY, now + Duration::from_secs(5)), None, "it is over");
    }

    #[test]
    fn expired_cooldowns_are_removed() {
        let (mut rests, now) = (Cooldowns::default(), Instant::now());
        for user in 0..MAX_UNPRUNED as u64 {
            rests.end(Consumer::User(user), 200, now);
        }
        rests.end(GREEDY, 200, now + Duration::from_secs(3));
        assert_eq!(rests.until.len(), 1);
    }
}
