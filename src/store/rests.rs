//! Rests between large writes: a write that changes many records makes every other write wait for its commit. While
//! several consumers write, each waits after such a write before its next one, so that large writes of one consumer take
//! about a hundredth of the writer's time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::fair::{Consumer, Latest};

/// A write that changes more records than this is large.
pub(super) const LARGE: usize = 100;
/// How long a consumer rests for each record that a larger write changed: about a hundred times what one takes.
const REST_EACH: Duration = Duration::from_millis(10);
/// So many rests are remembered before those that are over are looked for.
const FEW: usize = 64;

/// Who rests, and who wrote last.
#[derive(Default)]
pub(super) struct Rests {
    until: HashMap<Consumer, Instant>,
    latest: Latest<Consumer>,
}

impl Rests {
    /// Notes that a write of `consumer` begins.
    pub(super) fn begin(&mut self, consumer: Consumer, now: Instant) {
        self.latest.note(consumer, now);
    }

    /// Begins the rest of `consumer`, of which a write changed so many records.
    pub(super) fn end(&mut self, consumer: Consumer, records: usize, now: Instant) {
        if self.until.len() >= FEW {
            self.until.retain(|_, until| *until > now);
        }
        let rest = REST_EACH.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX));
        if let Some(until) = now.checked_add(rest) {
            self.until.insert(consumer, until);
        }
    }

    /// How long `consumer` still rests: not at all while no other consumer writes.
    pub(super) fn left(&self, consumer: Consumer, now: Instant) -> Option<Duration> {
        let rest = self.until.get(&consumer)?.checked_duration_since(now)?;
        let active = self.latest.others_count_for(consumer, now)?;
        Some(active.min(rest)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: Consumer = Consumer::User(1);
    const OTHER: Consumer = Consumer::User(2);

    #[test]
    fn a_large_write_is_followed_by_a_rest_while_another_consumer_writes() {
        let (mut rests, now) = (Rests::default(), Instant::now());
        rests.begin(GREEDY, now);
        rests.end(GREEDY, 500, now);
        assert_eq!(rests.left(GREEDY, now), None, "nobody else writes");
        let later = now + Duration::from_secs(2);
        rests.begin(OTHER, later);
        assert_eq!(
            rests.left(GREEDY, later),
            Some(Duration::from_secs(1)),
            "nobody else may write from then on"
        );
        assert_eq!(rests.left(OTHER, later), None);
        let last = now + Duration::from_millis(4_900);
        rests.begin(OTHER, last);
        assert_eq!(rests.left(GREEDY, last), Some(Duration::from_millis(100)));
        assert_eq!(rests.left(GREEDY, now + Duration::from_secs(5)), None, "it is over");
    }

    #[test]
    fn rests_that_are_over_are_forgotten() {
        let (mut rests, now) = (Rests::default(), Instant::now());
        for user in 0..FEW as u64 {
            rests.end(Consumer::User(user), 200, now);
        }
        rests.end(GREEDY, 200, now + Duration::from_secs(3));
        assert_eq!(rests.until.len(), 1);
    }
}
