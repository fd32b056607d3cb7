//! Argon2id, a bounded number of runs at a time, in memory that is kept.
//!
//! One run takes 19 MiB and about 14 ms. Allocating that anew for each would leave the heap several times
//! as large; so blocks are handed back and used again. Verifying keys and making keys have slots of their own,
//! which users take in turns: a user who creates keys without end delays no key that is used for the first time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use subtle::ConstantTimeEq;

use crate::background::{Priority, in_background};
use crate::error::{Error, Result};
use crate::fair::{Consumer, FairLimits, FairQueue, Slot};
use crate::meters::{Gauge, Histogram, Meters, Series, took};

use super::key::PresentedSecret;

/// How many runs one user or address may wait for at a time, of each kind.
const WAITING_EACH: usize = 64;
/// How many runs may wait at a time, of each kind.
const WAITING: usize = 1_024;
/// How long a run may wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Runs Argon2id off the request threads.
pub struct Hasher {
    verifying: FairQueue,
    making: FairQueue,
    idle: Mutex<Vec<Vec<Block>>>,
    queued: Gauge,
    times: Histogram,
}

/// Somebody who waits for a turn, until this is dropped.
struct Queued<'g>(&'g Gauge);

impl<'g> Queued<'g> {
    fn at(gauge: &'g Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl Hasher {
    /// A hasher for a machine with this many cores: half of them verify keys, a quarter make keys, and each has one
    /// at the least.
    pub fn new(cores: usize) -> Self {
        Self::metered(cores, &Meters::default())
    }

    /// The same, which tells `meters` who waits and how long runs take.
    pub fn metered(cores: usize, meters: &Meters) -> Self {
        let slots = |slots: usize| {
            let slots = slots.max(1);
            FairQueue::new(FairLimits {
                slots,
                slots_each: slots,
                waiting_each: WAITING_EACH,
                waiting: WAITING,
                longest_wait: Some(LONGEST_WAIT),
            })
        };
        Self {
            verifying: slots(cores / 2),
            making: slots(cores / 4),
            idle: Mutex::new(Vec::new()),
            queued: meters.gauge(Series::ARGON2_QUEUED, &[]),
            times: meters.histogram(Series::ARGON2_TIME, &[]),
        }
    }

    /// Whether `secret` is the one that `hash`, a PHC string, was made from. Waits for the consumer's turn.
    ///
    /// # Errors
    /// 500 when `hash` is no PHC string; 503 when too many wait.
    pub async fn verify(
        self: &Arc<Self>,
        consumer: Consumer,
        secret: PresentedSecret,
        hash: &str,
    ) -> Result<bool> {
        let expected = PasswordHash::new(hash).map_err(Error::internal)?;
        let slot = self.slot(&self.verifying, consumer).await?;
        let hasher = Arc::clone(self);
        let run = move || {
            let _slot = slot;
            hasher.matches(&secret, &expected)
        };
        tokio::task::spawn_blocking(run).await.map_err(Error::internal)?
    }

    /// Runs `work`, which makes a key, on a thread of low priority when it is the consumer's turn.
    ///
    /// # Errors
    /// What `work` returns; 503 when too many wait.
    pub async fn make<T: Send + 'static>(
        self: &Arc<Self>,
        consumer: Consumer,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = self.slot(&self.making, consumer).await?;
        let hasher = Arc::clone(self);
        let run = move || {
            let _slot = slot;
            work(&hasher)
        };
        in_background(Priority::Upkeep, run).await?
    }

    /// Waits for the consumer's turn. The slot belongs to the run, which goes on when its client has gone.
    async fn slot(&self, queue: &FairQueue, consumer: Consumer) -> Result<Slot> {
        let _queued = Queued::at(&self.queued);
        let slot = queue.acquire(consumer).await;
        slot.map_err(|_| Error::overloaded(1, "too many runs of Argon2 wait"))
    }

    fn matches(&self, secret: &PresentedSecret, expected: &PasswordHash) -> Result<bool> {
        let (Some(salt), Some(hash)) = (&expected.salt, &expected.hash) else {
            return Err(Error::internal("a stored hash has no salt or no output"));
        };
        let params = Params::try_from(expected).map_err(Error::internal)?;
        let mut output = vec![0; hash.len()];
        self.derive(&params, secret, salt, &mut output)?;
        Ok(output.ct_eq(hash.as_bytes()).into())
    }

    /// The PHC string of `secret` under the default parameters and this salt.
    ///
    /// # Errors
    /// 500 when Argon2 refuses, which it does not for secrets of this crate.
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
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut blocks = idle().pop().unwrap_or_default();
        if blocks.len() < params.block_count() {
            blocks.resize(params.block_count(), Block::default());
        }
        let begun = Instant::now();
        let derived = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone())
            .hash_password_into_with_memory(secret.as_bytes(), salt, output, &mut blocks)
            .map_err(Error::internal);
        took(&self.times, begun.elapsed());
        idle().push(blocks);
        derived
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;
    use crate::access::key::{NewKey, TagKey};
    use crate::ids::ApiKeyId;
    use crate::secret::Seed;
    use crate::time::Timestamp;

    const USER: Consumer = Consumer::User(1);

    fn secret() -> PresentedSecret {
        let tags = TagKey::new(&[7; 32]).expect("a tag key");
        let mut draw = Seed::take().draw();
        let id = ApiKeyId(draw.uuid(Timestamp::from_micros(0)));
        NewKey::draw(&tags, id, &mut draw).secret
    }

    #[tokio::test]
    async fn a_secret_matches_its_own_hash_alone() {
        let (hasher, mine, other) = (Arc::new(Hasher::new(2)), secret(), secret());
        let hash = hasher.hash(&mine, &[3; 16]).expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(hasher.verify(USER, mine, &hash).await.expect("verified"));
        assert!(!hasher.verify(USER, other, &hash).await.expect("verified"));
        let refused = hasher.verify(USER, secret(), "no hash").await;
        assert_eq!(refused.expect_err("no hash").status(), 500);
    }

    #[tokio::test]
    async fn a_client_that_goes_away_frees_no_turn_before_its_run_has_ended() {
        let hasher = Arc::new(Hasher::new(1));
        let hash = hasher.hash(&secret(), &[3; 16]).expect("a hash");
        assert!(hasher.verify(USER, secret(), &hash).now_or_never().is_none());
        assert_eq!(hasher.verifying.used(), 1);
        while hasher.verifying.used() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(hasher.idle.lock().expect("whole").len(), 1);
    }
}
