//! Hashes secrets with Argon2id, in reused memory.
//!
//! One run takes 19 MiB and about 14 ms. Allocating that memory for each run would fragment the heap to several times
//! the size, so finished runs return their blocks for reuse. Requests are verified by a key's digest
//! ([`Verifiers`](super::Verifiers)), not by Argon2.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};

use crate::error::{Error, Result};
use crate::metrics::{Histogram, Metrics, Series, record_seconds};

use super::key_text::PresentedSecret;

/// Runs Argon2id. Each run at the same time takes memory of its own, so callers limit their number.
pub struct KeyHasher {
    idle_memory: Mutex<Vec<Vec<Block>>>,
    durations: Histogram,
}

impl KeyHasher {
    /// Creates a hasher that records the run times in `metrics`.
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            idle_memory: Mutex::new(Vec::new()),
            durations: metrics.histogram(Series::ARGON2_TIME, &[]),
        }
    }

    /// Returns the PHC string of `secret` with this salt and the default parameters.
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
    use argon2::PasswordVerifier;

    use super::*;
    use crate::ids::ApiKeyId;
    use crate::resources::api_keys::key_text::{KeyText, TagKey};
    use crate::secret::Seed;
    use crate::time::Timestamp;

    fn secret() -> PresentedSecret {
        let tags = TagKey::new(&[7; 32]).expect("a tag key");
        let mut rng = Seed::generate().rng();
        let id = ApiKeyId(rng.uuid(Timestamp::from_micros(0)));
        KeyText::generate(&tags, id, &mut rng).secret
    }

    #[test]
    fn secret_matches_only_its_own_hash() {
        let (mine, other) = (secret(), secret());
        let hasher = KeyHasher::new(&Metrics::default());
        let hash = hasher.hash(&mine, &[3; 16]).expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let stored = PasswordHash::new(&hash).expect("a PHC string");
        let is_of = |secret: &PresentedSecret| {
            Argon2::default().verify_password(secret.as_bytes(), &stored).is_ok()
        };
        assert!(is_of(&mine) && !is_of(&other));
        hasher.hash(&other, &[3; 16]).expect("a hash");
        assert_eq!(hasher.idle_memory.lock().expect("whole").len(), 1, "the memory is reused");
    }
}
