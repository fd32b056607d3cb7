//! Which presented keys are known to be right: this process verifies each once, by its stored digest, or by Argon2 if
//! the data file has no digest of it yet.
//!
//! What is remembered is only "this text matches stored hash H", under a keyed fast hash of the text. It
//! holds no secret and grants nothing: each request still reads the key, its user and the membership, so
//! revoking, expiry and removal need not touch it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quick_cache::sync::Cache;

use crate::error::{Error, Result};
use crate::fair::Consumer;
use crate::ids::ApiKeyId;
use crate::meters::{Counter, Meters, Series};
use crate::resources::api_keys::{self, ApiKey, SecretDigest, USE_RECORDED_EVERY};
use crate::secret::Seed;
use crate::store::{Snapshot, Tx, WriteTx};
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
    /// The digest of the secret, if the data file had none.
    new_digest: Option<SecretDigest>,
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

    /// Records that the key was used, and the digest of its secret if the data file has none.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read or written.
    pub fn record_use(&self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        api_keys::record_use(tx, self.key(), now)?;
        let digest = self.0.new_digest.as_ref();
        digest.map_or(Ok(()), |digest| api_keys::record_digest(tx, self.key(), self.hash(), digest))
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
    /// 401 if it is not, in one text for every reason; 503 if too many keys of its user, or of all, wait for Argon2.
    pub async fn check(&self, tx: &Snapshot, text: &str) -> Result<Match> {
        let digest = *blake3::keyed_hash(&self.digest_key, text.as_bytes()).as_bytes();
        if let Some(found) = self.known.get(&digest) {
            self.hits.increment(1);
            return Ok(found);
        }
        self.misses.increment(1);
        let (id, secret) = key::parse(&self.tags, text).ok_or_else(Error::authentication_failed)?;
        let stored = tx.head::<ApiKey>(&id)?.ok_or_else(Error::authentication_failed)?;
        let consumer = Consumer::User(stored.user.0);
        let secret_digest = self.tags.digest(id, &secret);
        let candidate = api_keys::find_candidate(tx, stored, &secret_digest)?;
        let candidate = candidate.ok_or_else(Error::authentication_failed)?;
        let matched = |hash, new_digest| {
            Match(Arc::new(Matched { key: id, hash, new_digest, recorded: AtomicI64::new(0) }))
        };
        if candidate.is_proven {
            let found = matched(candidate.hash, None);
            self.known.insert(digest, found.clone());
            return Ok(found);
        }
        self.known
            .get_or_insert_async(&digest, async {
                if !self.hasher.verify(consumer, secret, &candidate.hash).await? {
                    return Err(Error::authentication_failed());
                }
                Ok(matched(candidate.hash, Some(secret_digest)))
            })
            .await
    }
}
