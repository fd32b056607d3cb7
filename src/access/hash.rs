//! Argon2id, a bounded number at a time, in memory that is kept.
//!
//! One run takes 19 MiB and about 14 ms. Allocating that anew for each would leave the heap several times
//! as large; so blocks are handed back and used again.

use std::sync::{Mutex, PoisonError};

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::error::{Error, Result};

use super::key::PresentedSecret;

/// Runs Argon2id off the request threads.
pub struct Hasher {
    permits: Semaphore,
    idle: Mutex<Vec<Vec<Block>>>,
}

impl Hasher {
    /// A hasher that runs at most `at_once` at a time.
    pub fn new(at_once: usize) -> Self {
        Self { permits: Semaphore::new(at_once), idle: Mutex::new(Vec::new()) }
    }

    /// Whether `secret` is the one that `hash`, a PHC string, was made from. Waits its turn.
    ///
    /// # Errors
    /// 500 when `hash` is no PHC string.
    pub async fn verify(
        self: &std::sync::Arc<Self>,
        secret: PresentedSecret,
        hash: &str,
    ) -> Result<bool> {
        let expected = PasswordHash::new(hash).map_err(Error::internal)?;
        let _turn = self.permits.acquire().await.map_err(Error::internal)?;
        let hasher = std::sync::Arc::clone(self);
        let verified = tokio::task::spawn_blocking(move || hasher.matches(&secret, &expected));
        verified.await.map_err(Error::internal)?
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
        let derived = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone())
            .hash_password_into_with_memory(secret.as_bytes(), salt, output, &mut blocks)
            .map_err(Error::internal);
        idle().push(blocks);
        derived
    }
}
