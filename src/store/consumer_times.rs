//! The time of a batch, which its consumers share.

use std::collections::HashMap;
use std::time::Duration;

use crate::fair_queue::Consumer;

/// The maximum time that the writes of one consumer run in a batch with writes of other consumers.
const CONSUMER_TIME: Duration = Duration::from_millis(2);

/// How long the writes of each consumer have run in the current batch.
#[derive(Default)]
pub(super) struct ConsumerTimes(HashMap<Option<Consumer>, Duration>);

impl ConsumerTimes {
    /// Adds the time that a write took.
    pub(super) fn add(&mut self, consumer: Option<Consumer>, took: Duration) {
        *self.0.entry(consumer).or_default() += took;
    }

    /// Whether the batch may take another write of `consumer`: the consumer has time left, or the batch has no writes of
    /// other consumers.
    pub(super) fn may_add(&self, consumer: Option<Consumer>) -> bool {
        self.0.get(&consumer).is_none_or(|used| *used < CONSUMER_TIME || self.0.len() == 1)
    }
}
