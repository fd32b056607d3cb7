//! Where the signing secret lies in the file, and how it is renewed.

use crate::error::Result;
use crate::secret::{Draw, SigningSecret};

use super::Store;
use super::engine::{begin, storage_error};
use super::read::Tx;
use super::record::damaged;
use super::schema::{RENEWED_KEY, SECRET_KEY, Table};
use super::write::WriteTx;

/// The signing secret of a file.
pub(super) fn stored_secret(tx: &impl Tx) -> Result<SigningSecret> {
    let part = |key| {
        let stored = tx.plain(Table::Meta, key)?.map(<[u8; 32]>::try_from).transpose();
        stored.map_err(|_| damaged(Table::Meta, &"a signing secret of another length"))
    };
    let first = part(SECRET_KEY)?.ok_or_else(|| damaged(Table::Meta, &"no signing secret"))?;
    Ok(SigningSecret::of(first, part(RENEWED_KEY)?))
}

impl WriteTx<'_> {
    /// Writes the signing secret.
    pub(super) fn put_secret(&mut self, secret: &SigningSecret) -> Result<()> {
        let (first, renewed) = secret.parts();
        self.put_plain(Table::Meta, SECRET_KEY, first)?;
        renewed.map_or(Ok(()), |renewed| self.put_plain(Table::Meta, RENEWED_KEY, renewed))
    }

    /// Renews every subkey of the signing secret but that of the key tags; answers the secret as it is since.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read or written.
    pub fn renew_secret(&mut self, draw: &mut Draw) -> Result<SigningSecret> {
        let secret = stored_secret(self)?.renewed(draw);
        self.put_secret(&secret)?;
        Ok(secret)
    }
}

impl Store {
    /// The signing secret of this data file.
    ///
    /// # Errors
    /// 500 or 503 when it cannot be read.
    pub fn signing_secret(&self) -> Result<SigningSecret> {
        stored_secret(&*self.snapshot()?)
    }

    /// Runs `rule` in a transaction of its own, and `then` once that is on disk and before anything else is served:
    /// what this process holds in memory and what is in the file change as one. Meanwhile everything is refused
    /// with 503.
    ///
    /// # Errors
    /// What the rule answers; 503 when the file is closed or the commit failed.
    pub async fn write_apart<T: Send + 'static>(
        &self,
        rule: impl FnOnce(&mut WriteTx<'_>) -> Result<T> + Send + 'static,
        then: impl FnOnce(&T) -> Result<()> + Send + 'static,
    ) -> Result<T> {
        self.exchange(move |database| {
            let transaction = begin(&database)?;
            let mut tx = WriteTx::new(&transaction);
            let answer = rule(&mut tx)?;
            tx.finish()?;
            transaction.commit().map_err(storage_error)?;
            then(&answer)?;
            Ok(answer)
        })
        .await
    }
}
