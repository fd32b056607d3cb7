//! `compact`: returns the unused space of the data file to the operating system.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::{CompactionError, Database};
use serde::Serialize;
use tokio::sync::OwnedRwLockWriteGuard;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::store::disk::engine::{RETRY_AFTER, close, storage_error};
use crate::store::reads::progress::Progress;
use crate::store::writer::Store;

use super::space::FreeSpace;

/// How long a compaction in the background waits for what is reading the whole file.
const WALKS_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a compaction waits for requests that are still reading.
const READERS_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which it tries again.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The free space that a compaction by a copy leaves at least: 64 MiB.
const MIN_ROOM: u64 = 64 * 1024 * 1024;

/// A completed compaction.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Compacted {
    /// The size of the file before, in bytes.
    pub bytes_before: u64,
    /// The size of the file after, in bytes.
    pub bytes: u64,
}

impl Store {
    /// Returns the unused space of the file to the operating system. If the disk has room for a copy of what is used, requests
    /// are served meanwhile. If not, this waits for requests that are reading, and new requests fail with 503.
    ///
    /// # Errors
    /// 400 when a backup, an export, a check or another compaction is reading the whole file; 503 when requests read for too
    /// long, the file changes faster than it is copied, is closed, or cannot be written or replaced.
    #[doc(hidden)]
    pub async fn compact(&self, progress: &Progress) -> Result<Compacted> {
        let alone = self.begin_compaction()?;
        if self.has_room_for_copy(MIN_ROOM).await? {
            return self.compact_by_copy(alone, progress).await;
        }
        drop(alone);
        self.compact_in_place(progress).await
    }

    /// Compacts the file as [`compact`](Self::compact) does while requests are served, or not at all. Waits some time for
    /// what is reading the whole file.
    ///
    /// # Errors
    /// The errors of [`compact`](Self::compact); also 503 when a copy would leave less than `reserve` bytes of the disk free.
    pub(crate) async fn compact_while_serving(&self, reserve: u64) -> Result<Compacted> {
        let alone = timeout(WALKS_TIMEOUT, Arc::clone(&self.walk_lock).write_owned()).await;
        let Ok(alone) = alone else { return Err(under_way()) };
        if !self.has_room_for_copy(reserve.max(MIN_ROOM)).await? {
            return Err(Error::unavailable(RETRY_AFTER, "the disk has no room for a copy"));
        }
        self.compact_by_copy(alone, &Progress::silent()).await
    }

    async fn compact_by_copy(
        &self,
        alone: OwnedRwLockWriteGuard<()>,
        progress: &Progress,
    ) -> Result<Compacted> {
        let bytes_before = self.size()?;
        self.replace_by_copy(alone, progress).await?;
        Ok(Compacted { bytes_before, bytes: self.size()? })
    }

    /// Compacts the file where it is. Waits for requests that are reading; new requests fail with 503 meanwhile.
    ///
    /// # Errors
    /// The errors of [`compact`](Self::compact).
    #[doc(hidden)]
    pub async fn compact_in_place(&self, progress: &Progress) -> Result<Compacted> {
        progress.begin("compacting", 0);
        let _alone = self.begin_compaction()?;
        let store = self.clone();
        self.with_exclusive_file(move |mut database| {
            let bytes_before = store.size()?;
            compact(&mut database)?;
            close(database)?;
            Ok(Compacted { bytes_before, bytes: store.size()? })
        })
        .await
    }

    fn begin_compaction(&self) -> Result<OwnedRwLockWriteGuard<()>> {
        Arc::clone(&self.walk_lock).try_write_owned().map_err(|_| under_way())
    }

    /// Whether a copy of the used part of the file leaves `reserve` bytes of the disk free.
    async fn has_room_for_copy(&self, reserve: u64) -> Result<bool> {
        let Some(room) = FreeSpace::of(self).get() else { return Ok(true) };
        // Commits that happen meanwhile make the copy larger.
        Ok(room.free > reserve.saturating_add(self.space().await?.used / 4 * 5))
    }
}

fn under_way() -> Error {
    let text = "a backup, an export, a check or another compaction is running; compact after it";
    Error::invalid("under_way", text)
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
