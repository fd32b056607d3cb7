//! `restore`: a backup in the place of the data file, which may be open meanwhile.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::secret::SigningSecret;

use super::backup::require_sound;
use super::check::Checks;
use super::disk::Drive;
use super::engine::begin_read;
use super::file::{self, Lock, beside, resolve};
use super::migrate::{format_of, open_database};
use super::open_error::OpenError;
use super::progress::Progress;
use super::schema::FORMAT;
use super::secrets::stored_secret;
use super::snapshot::Snapshot;
use super::{DEFAULT_CACHE, Store};

/// A restore that was done.
#[derive(Debug, Clone, Serialize)]
pub struct Restored {
    /// The data file.
    pub file: PathBuf,
    /// Where the file lies that was in its place, if one was.
    pub replaced: Option<PathBuf>,
}

/// A checked copy of a backup beside the data file, ready to take its place. Gone when this is dropped.
pub struct Prepared {
    data: PathBuf,
    copy: PathBuf,
    lock: Option<Lock>,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        let _ = file::remove(&Drive::files(), &self.copy);
        if let Some(lock) = self.lock.take() {
            lock.withdraw();
        }
    }
}

/// Where the copy lies that is to take the place of the file at `data`.
fn copy_beside(data: &Path) -> PathBuf {
    beside(data, "restoring")
}

impl Prepared {
    /// Copies the backup at `from`, brings the copy up to date, and checks it.
    ///
    /// # Errors
    /// When the backup is in use, is none or does not hold together, another restore is under way, or the
    /// operating system refuses.
    pub fn new(
        data: &Path,
        from: &Path,
        checks: &Checks,
        progress: &Progress,
    ) -> Result<Self, OpenError> {
        let drive = Drive::files();
        let from = &resolve(from);
        let source = Lock::take_for_existing(&drive, from)?;
        let copy = copy_beside(data);
        let lock = Some(Lock::take(&copy)?);
        let prepared = Self { data: data.to_owned(), copy, lock };
        progress.begin("copying", 0);
        let copied =
            file::remove(&drive, &prepared.copy).and_then(|()| file::copy(from, &prepared.copy));
        source.withdraw();
        copied?;
        let opened = open_database(&drive, &prepared.copy, DEFAULT_CACHE);
        let mut database = opened.map_err(|error| error.told_of(from))?;
        require_sound(from, &mut database, checks, progress)?;
        drop(database);
        Ok(prepared)
    }

    /// Puts the copy in the place of a data file that nobody has open. That one stays beside it, its name ending
    /// in `replaced` and `stamp`.
    ///
    /// # Errors
    /// When the data file is in use or the operating system refuses.
    pub fn swap(&self, stamp: &str) -> Result<Restored, OpenError> {
        let lock = Lock::take(&self.data)?;
        let drive = Drive::files();
        file::remove_draft(&drive, &self.data)?;
        let swapped = put(&drive, &self.data, stamp);
        if swapped.is_err() {
            lock.withdraw();
        }
        swapped
    }
}

fn put(drive: &Drive, data: &Path, stamp: &str) -> Result<Restored, OpenError> {
    file::give_owner_of(data, &copy_beside(data))?;
    let replaced = file::replace(drive, data, &copy_beside(data), &format!("replaced-{stamp}"))?;
    Ok(Restored { file: data.to_owned(), replaced })
}

impl Store {
    /// Puts the [`Prepared`] copy in the place of this store's file, while it is open: for a moment everything is
    /// refused with 503, then the copy is served.
    ///
    /// # Errors
    /// 400 when there is no such copy or it is another workspace's, whose links and keys this process does not
    /// know; 503 when the file is closed.
    pub async fn restore(&self, stamp: String) -> Result<Restored> {
        let (drive, data) = (self.drive.clone(), self.path().to_owned());
        self.exchange(move |database| {
            let held =
                || Ok(stored_secret(&Snapshot::new(begin_read(&database)?, Box::new(|| ())))?);
            let swapped = held().and_then(|secret| {
                require_same(&drive, &data, &secret)?;
                drop(database);
                put(&drive, &data, &stamp)
            });
            swapped.map_err(|error| Error::invalid("not_restored", error.to_string()))
        })
        .await
    }
}

fn require_same(drive: &Drive, data: &Path, secret: &SigningSecret) -> Result<(), OpenError> {
    let copy = copy_beside(data);
    let found = file::inspect(drive, &copy, DEFAULT_CACHE, |shown| {
        if format_of(shown, &copy)? != FORMAT {
            let text = "the command is another release than the server; use the same one";
            return Err(Error::invalid("another_release", text).into());
        }
        Ok(stored_secret(&Snapshot::new(begin_read(shown)?, Box::new(|| ())))?)
    })?;
    if found == *secret {
        return Ok(());
    }
    let text = if found.parts().0 == secret.parts().0 {
        "the backup holds other secrets than the server, since they were rotated; stop the server to restore it"
    } else {
        "the backup is of another workspace; stop the server to restore it"
    };
    Err(Error::invalid("another_workspace", text).into())
}
