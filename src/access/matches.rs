//! Which presented keys are known to be right: Argon2 is paid once per key and process (decisions §2).
//!
//! What is remembered is only "this text matches stored hash H", under a keyed fast hash of the text. It
//! holds no secret and grants nothing: each request still reads the key, its user and the membership, so
//! revoking, expiry and removal need not touch it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quick_cache::sync::Cache;

use crate::error::{Error, Result};
use crate::ids::ApiKeyId;
use crate::meters::{Counter, Meters, Series};
use crate::resources::api_keys::{self, ApiKey, USE_RECORDED_EVERY};
use crate::secret::Seed;
use crate::store::{Snapshot, Tx};
use crate::time::Timestamp;

use super::hash::Hasher;
use super::key::{self, TagKey};

/// How many keys are remembered.
const REMEMBERED: usize = 10_000;

/// A presented key that was found right.
#[derive(Clone)]
pub struct Match(Arc<Matched>);

struct Matched {
    key: ApiKeyId,
    hash: String,
    /// When this process last asked for the use to be recorded, in microseconds.
    recorded: AtomicI64,
}

impl Match {
    /// The key that was presented.
    pub fn key(&self) -> ApiKeyId {
        self.0.key
    }

    /// The stored hash that the secret was found to match.
    pub fn hash(&self) -> &str {
        &self.0.hash
    }

    /// Whether the use is due to be recorded; true at most once an hour.
    pub fn use_is_due(&self, now: Timestamp) -> bool {
        let last = self.0.recorded.load(Ordering::Relaxed);
        let due = Timestamp::from_micros(last).plus_seconds(USE_RECORDED_EVERY);
        now >= due
            && self
                .0
                .recorded
                .compare_exchange(last, now.micros(), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

/// The keys this process has found right.
pub struct Matches {
    tags: TagKey,
    hasher: Arc<Hasher>,
    digest_key: [u8; 32],
    known: Cache<[u8; 32], Match>,
    hits: Counter,
    misses: Counter,
}

impl Matches {
    /// Nothing known yet; what is found and what is not goes to `meters`.
    pub fn new(tags: TagKey, hasher: Arc<Hasher>, meters: &Meters) -> Self {
        let digest_key = Seed::take().draw().bytes();
        let [hits, misses] =
            [Series::KEY_HITS, Series::KEY_MISSES].map(|series| meters.counter(series, &[]));
        Self { tags, hasher, digest_key, known: Cache::new(REMEMBERED), hits, misses }
    }

    /// Finds out whether `text` is a key of this file. Many who ask for the same key at once wait for
    /// one Argon2 run.
    ///
    /// # Errors
    /// 401 where it is not, in one text for every reason.
    pub async fn check(&self, tx: &Snapshot, text: &str) -> Result<Match> {
        let digest = *blake3::keyed_hash(&self.digest_key, text.as_bytes()).as_bytes();
        if let Some(found) = self.known.get(&digest) {
            self.hits.increment(1);
            return Ok(found);
        }
        self.misses.increment(1);
        let (id, secret) = key::parse(&self.tags, text).ok_or_else(Error::authentication_failed)?;
        let stored = tx.head::<ApiKey>(&id)?.ok_or_else(Error::authentication_failed)?;
        let hash = api_keys::hash_to_verify(tx, stored, &self.tags.digest(id, &secret))?;
        let hash = hash.ok_or_else(Error::authentication_failed)?;
        self.known
            .get_or_insert_async(&digest, async {
                if !self.hasher.verify(secret, &hash).await? {
                    return Err(Error::authentication_failed());
                }
                let recorded = AtomicI64::new(0);
                Ok(Match(Arc::new(Matched { key: id, hash, recorded })))
            })
            .await
    }
}
