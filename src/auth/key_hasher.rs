//! Hashes secrets with Argon2id: a bounded number of runs, in reused memory.
//!
//! One run takes 19 MiB and about 14 ms. Allocating that memory for each run would fragment the heap to several times
//! the size, so finished runs return their blocks for reuse. Users take turns: a user who creates keys without pause
//! does not delay other users for long. Requests are verified by a key's digest
//! ([`Verifiers`](crate::resources::api_keys::Verifiers)), not by Argon2.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};

use crate::error::{Error, Result};
use crate::fair_queue::{Consumer, FairQueue, FairQueueLimits, Slot};
use crate::low_priority::{Priority, run_low_priority};
use crate::metrics::{Gauge, Histogram, Metrics, Series, record_seconds};

use super::key_text::PresentedSecret;

/// The maximum number of runs of one user or address in the queue.
const MAX_WAITING_PER_CONSUMER: usize = 64;
/// The maximum number of runs in the queue.
const MAX_WAITING: usize = 1_024;
/// How long a run may wait in the queue.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Runs Argon2id off the request threads.
pub struct KeyHasher {
    create_queue: FairQueue,
    idle_memory: Mutex<Vec<Vec<Block>>>,
    queued: Gauge,
    durations: Histogram,
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

impl KeyHasher {
    /// Creates a hasher for a machine with this many cores. A quarter of them, at least one, hash secrets.
    pub fn new(cores: usize) -> Self {
        Self::with_metrics(cores, &Metrics::default())
    }

    /// Does what [`new`](Self::new) does, and records the queue's length and the run times in `metrics`.
    pub fn with_metrics(cores: usize, metrics: &Metrics) -> Self {
        let slots = (cores / 4).max(1);
        Self {
            create_queue: FairQueue::new(FairQueueLimits {
                slots,
                slots_per_consumer: slots,
                waiting_per_consumer: MAX_WAITING_PER_CONSUMER,
                waiting: MAX_WAITING,
                max_wait: Some(MAX_WAIT),
            }),
            idle_memory: Mutex::new(Vec::new()),
            queued: metrics.gauge(Series::ARGON2_QUEUED, &[]),
            durations: metrics.histogram(Series::ARGON2_TIME, &[]),
        }
    }

    /// Runs `work`, which creates a key, on a low-priority thread when it is the consumer's turn.
    ///
    /// # Errors
    /// The error of `work`; 503 if the queue is full.
    pub async fn run_create<T: Send + 'static>(
        self: &Arc<Self>,
        consumer: Consumer,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = self.acquire_slot(consumer).await?;
        let hasher = Arc::clone(self);
        let run = move || {
            let _slot = slot;
            work(&hasher)
        };
        run_low_priority(Priority::Upkeep, run).await?
    }

    /// Waits for the consumer's turn. The run owns the slot, because it continues when its client disconnects.
    async fn acquire_slot(&self, consumer: Consumer) -> Result<Slot> {
        let _queued = QueuedGuard::new(&self.queued);
        let slot = self.create_queue.acquire(consumer).await;
        slot.map_err(|_| Error::overloaded(1, "the Argon2 queue is full"))
    }

    /// Returns the PHC string of `secret` with this salt and the default parameters.
    ///
    /// # Errors
    /// 500 if Argon2 fails, which it does not for secrets of this crate.
    pub fn hash(&self, secret: &PresentedSecret, salt: &[u8; 16]) -> Result<String> {
        let params = Params::default();
        let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
        self.derive(&params, secret, salt, &mut output)?;
        let hash = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&params).map_err(Error::internal)?,
            salt: Some(Salt::new(salt).map_err(Error::internal)?),
            hash: Some(Output::new(&output).map_err(Error::internal)?),
        };
        Ok(hash.to_string())
    }

    fn derive(
        &self,
        params: &Params,
        secret: &PresentedSecret,
        salt: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let idle = || self.idle_memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut blocks = idle().pop().unwrap_or_default();
        if blocks.len() < params.block_count() {
            blocks.resize(params.block_count(), Block::default());
        }
        let begun = Instant::now();
        let derived = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone())
            .hash_password_into_with_memory(secret.as_bytes(), salt, output, &mut blocks)
            .map_err(Error::internal);
        record_seconds(&self.durations, begun.elapsed());
        idle().push(blocks);
        derived
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use argon2::PasswordVerifier;
    use futures_util::FutureExt;

    use super::*;
    use crate::auth::key_text::{KeyText, TagKey};
    use crate::ids::ApiKeyId;
    use crate::secret::Seed;
    use crate::time::Timestamp;

    const USER: Consumer = Consumer::User(1);

    fn secret() -> PresentedSecret {
        let tags = TagKey::new(&[7; 32]).expect("a tag key");
        let mut rng = Seed::generate().rng();
        let id = ApiKeyId(rng.uuid(Timestamp::from_micros(0)));
        KeyText::generate(&tags, id, &mut rng).secret
    }

    #[test]
    fn a_secret_matches_its_own_hash_alone() {
        let (mine, other) = (secret(), secret());
        let hash = KeyHasher::new(1).hash(&mine, &[3; 16]).expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let stored = PasswordHash::new(&hash).expect("a PHC string");
        let is_of = |secret: &PresentedSecret| {
            Argon2::default().verify_password(secret.as_bytes(), &stored).is_ok()
        };
        assert!(is_of(&mine) && !is_of(&other));
    }

    #[tokio::test]
    async fn a_client_that_goes_away_frees_no_turn_before_its_run_has_ended() {
        let hasher = Arc::new(KeyHasher::new(1));
        let hash = |hasher: &KeyHasher| hasher.hash(&secret(), &[3; 16]);
        assert!(hasher.run_create(USER, hash).now_or_never().is_none());
        assert_eq!(hasher.create_queue.used(), 1);
        while hasher.create_queue.used() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(hasher.idle_memory.lock().expect("whole").len(), 1);
    }
}
