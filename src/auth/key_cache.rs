//! A cache of verified API keys. This process verifies each key once, by its stored hash.
//!
//! An entry states only that a text matches a stored hash, and is found by a keyed hash of the text. It contains no
//! secret and grants nothing: each request is still authorized. So revocation and expiry need not change the cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quick_cache::sync::Cache;

use crate::base::error::{Error, Result};
use crate::base::secret::Seed;
use crate::base::time::Timestamp;
use crate::ids::ApiKeyId;
use crate::metrics::{Counter, Metrics, Series};
use crate::resources::api_keys::{self, ApiKey, TagKey, USE_RECORD_INTERVAL, parse_key};
use crate::store::{Snapshot, Tx, WriteTx};

/// The capacity of the cache, in keys.
const MAX_CACHED_KEYS: usize = 10_000;

/// A verified API key.
#[derive(Clone)]
pub struct VerifiedKey(Arc<Inner>);

struct Inner {
    key: ApiKeyId,
    hash: String,
    /// The last use that this process recorded, in microseconds since 1970.
    use_recorded_at: AtomicI64,
}

impl PartialEq for VerifiedKey {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&self.0, &other.0);
        Arc::ptr_eq(one, other) || (one.key == other.key && one.hash == other.hash)
    }
}

impl VerifiedKey {
    /// Returns the key's public id.
    pub fn key(&self) -> ApiKeyId {
        self.0.key
    }

    /// Returns the stored hash that the secret matches.
    pub fn hash(&self) -> &str {
        &self.0.hash
    }

    /// Records that the key was used.
    pub fn record_use(&self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        api_keys::record_use(tx, self.key(), now)
    }

    /// Returns whether a use is due to be recorded. It is at most once an hour.
    pub fn is_use_due(&self, now: Timestamp) -> bool {
        let last = self.0.use_recorded_at.load(Ordering::Relaxed);
        !Timestamp::from_micros(last).is_begin_of_current(USE_RECORD_INTERVAL, now)
            && self
                .0
                .use_recorded_at
                .compare_exchange(last, now.micros(), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

/// The cache of the keys that this process has verified.
pub struct KeyCache {
    tags: TagKey,
    digest_key: [u8; 32],
    known: Cache<[u8; 32], VerifiedKey>,
    /// Texts of keys that have, or had, another secret, so that each costs one run. Their hashes are found by the same digest.
    refused: Cache<[u8; 32], Arc<[String]>>,
    hits: Counter,
    misses: Counter,
}

impl KeyCache {
    /// Creates an empty cache. Hits and misses are counted in `metrics`.
    pub fn new(tags: TagKey, metrics: &Metrics) -> Self {
        let digest_key = Seed::generate().rng().bytes();
        let [hits, misses] =
            [Series::KEY_HITS, Series::KEY_MISSES].map(|series| metrics.counter(series, &[]));
        let (known, refused) = (Cache::new(MAX_CACHED_KEYS), Cache::new(MAX_CACHED_KEYS));
        Self { tags, digest_key, known, refused, hits, misses }
    }

    /// Verifies the text of a key.
    ///
    /// # Errors
    /// 401 with the same text for every reason if the key is not valid.
    pub fn verify(&self, tx: &Snapshot, text: &str) -> Result<VerifiedKey> {
        let digest = *blake3::keyed_hash(&self.digest_key, text.as_bytes()).as_bytes();
        if let Some(found) = self.known.get(&digest) {
            self.hits.increment(1);
            return Ok(found);
        }
        self.misses.increment(1);
        let (id, secret) = parse_key(&self.tags, text).ok_or_else(Error::authentication_failed)?;
        let stored = tx.meta::<ApiKey>(&id)?.ok_or_else(Error::authentication_failed)?;
        if self.refused.get(&digest).is_some_and(|hashes| stored.hashes().eq(hashes.iter())) {
            return Err(Error::authentication_failed());
        }
        let Some(hash) = stored.find_hash(&secret)? else {
            self.refused.insert(digest, stored.hashes().map(str::to_owned).collect());
            return Err(Error::authentication_failed());
        };
        let found = VerifiedKey(Arc::new(Inner {
            key: id,
            hash: hash.to_owned(),
            use_recorded_at: AtomicI64::new(0),
        }));
        self.known.insert(digest, found.clone());
        Ok(found)
    }
}
