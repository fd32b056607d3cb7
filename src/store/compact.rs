//! `compact`: returns the unused space of the data file to the operating system.

use std::time::{Duration, Instant};

use redb::{CompactionError, Database};
use serde::Serialize;

use crate::error::{Error, Result};

use super::Store;
use super::engine::{RETRY_AFTER, begin, storage_error};
use super::progress::Progress;
use super::record_registry::RecordRegistry;
use super::write::WriteTx;

/// How long a compaction waits for requests that are still reading.
const READERS_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which it tries again.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A completed compaction.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Compacted {
    /// The size of the file before, in bytes.
    pub bytes_before: u64,
    /// The size of the file after, in bytes.
    pub bytes: u64,
}

/// The size of the data file, and how much of it is unused.
#[derive(Debug, Clone, Copy)]
pub struct SpaceUsage {
    /// The size of the file in bytes.
    pub bytes: u64,
    /// How many of these bytes a compaction would free, by redb's estimate.
    pub dead: u64,
}

impl Store {
    /// Returns the size of the file and its unused space.
    ///
    /// # Errors
    /// 503 when the file is closed or cannot be read.
    pub(crate) async fn space(&self) -> Result<SpaceUsage> {
        let bytes = self.path().metadata().map_err(Error::internal)?.len();
        let allocated = self.write(|tx| tx.allocated()).await?;
        Ok(SpaceUsage { bytes, dead: bytes.saturating_sub(allocated) })
    }

    /// Stores the records of older layouts in the current one, and returns the unused space of the file to the
    /// operating system. Waits for requests that are reading; new requests fail with 503 meanwhile.
    ///
    /// # Errors
    /// 400 when a backup, an export, a check or a scrub is reading the whole file; 503 when requests read for
    /// too long, the file is closed, or it cannot be written.
    #[doc(hidden)]
    pub async fn compact(
        &self,
        registry: RecordRegistry,
        progress: &Progress,
    ) -> Result<Compacted> {
        progress.begin("compacting", 0);
        let Ok(_alone) = self.walk_lock.try_write() else {
            let text = "a backup, an export, a check or a scrub is running; compact after it";
            return Err(Error::invalid("under_way", text));
        };
        let (fs, path) = (self.fs.clone(), self.path().to_owned());
        let size = move || {
            let size = fs.file_system().open(&path).and_then(|file| file.size());
            size.map_err(|cause| Error::unavailable(RETRY_AFTER, cause))
        };
        self.with_exclusive_file(move |mut database| {
            let bytes_before = size()?;
            upgrade(&database, &registry)?;
            compact(&mut database)?;
            drop(database);
            Ok(Compacted { bytes_before, bytes: size()? })
        })
        .await
    }
}

/// Stores every record of an older layout in the current one.
fn upgrade(database: &Database, registry: &RecordRegistry) -> Result<()> {
    let transaction = begin(database)?;
    let mut tx = WriteTx::new(&transaction);
    let mut upgraded = 0;
    for record_type in &registry.record_types {
        upgraded += record_type.upgrade(&mut tx)?;
    }
    if upgraded == 0 {
        drop(tx);
        return transaction.abort().map_err(storage_error);
    }
    tx.finish()?;
    transaction.commit().map_err(storage_error)?;
    tracing::info!(upgraded, "stored records of older releases in the current layout");
    Ok(())
}

fn compact(database: &mut Database) -> Result<()> {
    let begun = Instant::now();
    loop {
        match database.compact() {
            // One pass may free space that the next pass can use.
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(CompactionError::TransactionInProgress) if begun.elapsed() < READERS_TIMEOUT => {
                std::thread::sleep(POLL_INTERVAL);
            }
            Err(CompactionError::TransactionInProgress) => {
                return Err(Error::unavailable(
                    RETRY_AFTER,
                    "requests are still reading the data file",
                ));
            }
            Err(CompactionError::Storage(error)) => return Err(storage_error(error)),
            Err(error) => return Err(Error::internal(error)),
        }
    }
}
