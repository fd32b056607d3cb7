//! Creates API keys: a bounded number at the same time, off the request threads.
//!
//! Users take turns: a user who creates keys without pause does not delay other users for long.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::fair_queue::{Consumer, FairQueue, FairQueueLimits, Slot};
use crate::low_priority::{Priority, run_low_priority};
use crate::metrics::{Gauge, Metrics, Series};
use crate::resources::api_keys::KeyHasher;

/// The maximum number of runs of one user or address in the queue.
const MAX_WAITING_PER_CONSUMER: usize = 64;
/// The maximum number of runs in the queue.
const MAX_WAITING: usize = 1_024;
/// How long a run may wait in the queue.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The queue of keys to create, and their hasher.
pub(super) struct KeyCreation {
    hasher: Arc<KeyHasher>,
    queue: FairQueue,
    queued: Gauge,
}

/// Counts one waiting caller in the gauge until it is dropped.
struct QueuedGuard<'g>(&'g Gauge);

impl<'g> QueuedGuard<'g> {
    fn new(gauge: &'g Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for QueuedGuard<'_> {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl KeyCreation {
    /// Creates the queue for a machine with this many cores. A quarter of them, at least one, create keys.
    pub(super) fn new(cores: usize, metrics: &Metrics) -> Self {
        let slots = (cores / 4).max(1);
        Self {
            hasher: Arc::new(KeyHasher::new(metrics)),
            queue: FairQueue::new(FairQueueLimits {
                slots,
                slots_per_consumer: slots,
                waiting_per_consumer: MAX_WAITING_PER_CONSUMER,
                waiting: MAX_WAITING,
                max_wait: Some(MAX_WAIT),
            }),
            queued: metrics.gauge(Series::ARGON2_QUEUED, &[]),
        }
    }

    /// Runs `work`, which creates a key, on a low-priority thread when it is the consumer's turn.
    ///
    /// # Errors
    /// The error of `work`; 503 if the queue is full.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        consumer: Consumer,
        work: impl FnOnce(&KeyHasher) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = self.acquire_slot(consumer).await?;
        let hasher = Arc::clone(&self.hasher);
        let run = move || {
            // The run owns the slot, because it continues when its client disconnects.
            let _slot = slot;
            work(&hasher)
        };
        run_low_priority(Priority::Upkeep, run).await?
    }

    async fn acquire_slot(&self, consumer: Consumer) -> Result<Slot> {
        let _queued = QueuedGuard::new(&self.queued);
        let slot = self.queue.acquire(consumer).await;
        slot.map_err(|_| Error::overloaded(1, "the Argon2 queue is full"))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;
    use crate::wait::eventually;

    #[tokio::test]
    async fn cancelled_hash_keeps_its_slot_until_hashing_ends() {
        let keys = KeyCreation::new(1, &Metrics::default());
        let (finish, finished) = mpsc::channel::<Infallible>();
        let work = move |_: &KeyHasher| {
            // Fails when `finish` is dropped.
            let _ = finished.recv();
            Ok(())
        };
        assert!(keys.run(Consumer::User(1), work).now_or_never().is_none());
        assert_eq!(keys.queue.used(), 1);
        drop(finish);
        eventually("a free slot", || (keys.queue.used() == 0).then_some(())).await;
    }
}
