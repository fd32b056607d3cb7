//! The signing secret of a file, and the workspace that it names.

use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::secret::{SeededRng, SigningSecret};
use crate::store::disk::engine::DEFAULT_CACHE;
use crate::store::disk::file::{self, follow_link};
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::reads::snapshot::Snapshot;
use crate::store::record::Tx;
use crate::store::values::payload::damaged;
use crate::store::values::schema::{RENEWED_KEY, SECRET_KEY, Table};
use crate::store::write::WriteTx;
use crate::store::write::cell::stored_cell;

use super::migrate::format_of;

/// Returns the signing secret of a file.
pub fn stored_secret(tx: &impl Tx) -> Result<SigningSecret> {
    let part = |key| {
        let stored = tx.get_raw(Table::Meta, key)?.map(<[u8; 32]>::try_from).transpose();
        stored.map_err(|_| damaged(Table::Meta, &"a signing secret of the wrong length"))
    };
    let first = part(SECRET_KEY)?.ok_or_else(|| damaged(Table::Meta, &"no signing secret"))?;
    Ok(SigningSecret::from_parts(first, part(RENEWED_KEY)?))
}

/// The id of a workspace. It is derived from the secret of the tags of API keys, which a rotation keeps, and from the
/// cell, because cells may share a secret. A backup has the id of its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceId([u8; 32]);

impl WorkspaceId {
    pub(in crate::store) fn stored(tx: &impl Tx) -> Result<Self> {
        let (secret, cell) = (stored_secret(tx)?, stored_cell(tx)?);
        Ok(Self::named(secret.parts().0, cell.number()))
    }

    /// Returns the workspace with this secret of the tags of API keys, in the cell with this number.
    pub(in crate::store) fn named(secret: &[u8; 32], cell: u64) -> Self {
        let named = [secret.as_slice(), &cell.to_be_bytes()].concat();
        Self(blake3::derive_key("steward workspace id 1", &named))
    }

    /// Returns the workspace of the data file or backup at `path`, and leaves the file as it is.
    ///
    /// # Errors
    /// As [`signing_secret_of`].
    pub fn of(path: &Path) -> Result<Self, OpenError> {
        read_from(path, Self::stored)
    }
}

/// Fails unless the backup has the secrets of what it would replace: the links and keys in it could not be verified. `holder` says
/// what has these, and `hint` what to do.
///
/// # Errors
/// 400, with the hint.
pub fn require_same_secret(
    backup: &SigningSecret,
    held: &SigningSecret,
    holder: &str,
    hint: &str,
) -> Result<()> {
    if backup == held {
        return Ok(());
    }
    let text = if backup.parts().0 == held.parts().0 {
        format!(
            "the backup has different secrets than the {holder}, because they were rotated; {hint}"
        )
    } else {
        format!("the backup is of another workspace; {hint}")
    };
    Err(Error::invalid("another_workspace", text))
}

impl WriteTx<'_> {
    /// Stores the signing secret.
    pub fn put_secret(&mut self, secret: &SigningSecret) {
        let (first, renewed) = secret.parts();
        self.put_raw(Table::Meta, SECRET_KEY, first);
        if let Some(renewed) = renewed {
            self.put_raw(Table::Meta, RENEWED_KEY, renewed);
        }
    }

    /// Rotates every subkey of the signing secret except the one for key tags, and returns the new secret.
    pub fn renew_secret(&mut self, rng: &mut SeededRng) -> Result<SigningSecret> {
        let secret = stored_secret(self)?.renewed(rng);
        self.put_secret(&secret);
        Ok(secret)
    }
}

/// Returns the signing secret of the backup that an operator named, and leaves the file as it is.
///
/// # Errors
/// When the file is missing, not a Steward data file, newer than this release, or damaged.
pub fn signing_secret_of(backup: &Path) -> Result<SigningSecret, OpenError> {
    read_from(&follow_link(backup)?, stored_secret).map_err(OpenError::of_backup)
}

fn read_from<T>(path: &Path, read: impl FnOnce(&Snapshot) -> Result<T>) -> Result<T, OpenError> {
    file::inspect(&FsHandle::os(), path, DEFAULT_CACHE, |database| {
        format_of(database, path)?;
        Ok(read(&Snapshot::begin(database)?)?)
    })
}
