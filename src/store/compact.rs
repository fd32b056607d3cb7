//! `compact`: the file without its dead space.

use std::time::{Duration, Instant};

use redb::{CompactionError, Database};
use serde::Serialize;

use crate::error::{Error, Result};

use super::Store;
use super::engine::{RETRY_AFTER, storage_error};
use super::progress::Progress;

/// How long it waits for requests that still read.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it waits between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// A compaction that was done.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Compacted {
    /// How large the file was, in bytes.
    pub bytes_before: u64,
    /// How large it is.
    pub bytes: u64,
}

/// What of the file is in use.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    /// How large it is, in bytes.
    pub bytes: u64,
    /// How many of them compacting would give back, as far as redb can tell before it does.
    pub dead: u64,
}

impl Store {
    /// What of the file is in use.
    ///
    /// # Errors
    /// 503 when the file is closed or cannot be read.
    pub async fn space(&self) -> Result<Space> {
        let bytes = self.path().metadata().map_err(Error::internal)?.len();
        let allocated = self.write(|tx| tx.allocated()).await?;
        Ok(Space { bytes, dead: bytes.saturating_sub(allocated) })
    }

    /// Gives the file's dead space back to the operating system. Meanwhile everything is refused with 503; requests
    /// that read are waited for.
    ///
    /// # Errors
    /// 400 when the whole file is being read, for a backup, an export, a check or a scrub; 503 when requests read for
    /// too long, the file is closed, or it cannot be written.
    pub async fn compact(&self, progress: &Progress) -> Result<Compacted> {
        progress.begin("compacting", 0);
        let Ok(_alone) = self.walks.try_write() else {
            let text =
                "a backup, an export, a check or a scrub is under way; compact when it is done";
            return Err(Error::invalid("under_way", text));
        };
        let (drive, path) = (self.drive.clone(), self.path().to_owned());
        let size = move || {
            let size = drive.disk().open(&path).and_then(|file| file.size());
            size.map_err(|cause| Error::unavailable(RETRY_AFTER, cause))
        };
        self.exchange(move |mut database| {
            let bytes_before = size()?;
            compact(&mut database)?;
            drop(database);
            Ok(Compacted { bytes_before, bytes: size()? })
        })
        .await
    }
}

fn compact(database: &mut Database) -> Result<()> {
    let begun = Instant::now();
    loop {
        match database.compact() {
            // One pass may make room for another.
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(CompactionError::TransactionInProgress) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            Err(CompactionError::TransactionInProgress) => {
                return Err(Error::unavailable(RETRY_AFTER, "requests still read the data file"));
            }
            Err(CompactionError::Storage(error)) => return Err(storage_error(error)),
            Err(error) => return Err(Error::internal(error)),
        }
    }
}
