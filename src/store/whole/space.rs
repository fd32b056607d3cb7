//! The space that the data file takes, and the free space of its file system.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::base::error::Result;
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::store::disk::engine::unavailable;
use crate::store::disk::file::folder_of;
use crate::store::disk::file_system::{FreeBytes, FsHandle};
use crate::store::values::schema::Table;
use crate::store::writer::Store;

/// How long a measurement is used.
const CACHE_TIME: Duration = Duration::from_secs(1);
/// How many bytes on disk one byte of a record takes, including indexes and rewritten pages.
const DISK_BYTES_PER_BYTE: u64 = 4;

/// The free space of the file system that holds a data file. Measured at most once a second; between two
/// measurements, subtracts what is written.
#[derive(Debug)]
pub struct FreeSpace {
    fs: FsHandle,
    folder: PathBuf,
    /// The last measurement, and its time.
    last: Mutex<Option<(Option<FreeBytes>, Instant)>>,
}

impl FreeSpace {
    /// Watches the file system that holds the file of `store`.
    pub fn of(store: &Store) -> Self {
        let folder = folder_of(store.path()).to_owned();
        Self { fs: store.fs.clone(), folder, last: Mutex::default() }
    }

    /// Returns the space, or `None` if the file system does not report it.
    pub fn get(&self) -> Option<FreeBytes> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some((space, at)) if at.elapsed() < CACHE_TIME => space,
            _ => last.insert((self.query(), Instant::now())).0,
        }
    }

    /// Subtracts the disk space for records of `bytes` bytes.
    pub fn note_added(&self, bytes: u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((Some(space), _)) = last.as_mut() {
            space.free = space.free.saturating_sub(bytes.saturating_mul(DISK_BYTES_PER_BYTE));
        }
    }

    fn query(&self) -> Option<FreeBytes> {
        self.fs.file_system().space(&self.folder).unwrap_or_else(|error| {
            tracing::warn!(%error, "the free space of the file system cannot be read");
            None
        })
    }
}

/// The number of bytes in a block of [`MetadataExt::blocks`].
const BLOCK: u64 = 512;

/// The space that the data file takes, and how much of it is used.
#[derive(Debug, Clone, Copy)]
pub struct SpaceUsage {
    /// The size of the file on disk, in bytes. A sparse file is longer.
    pub bytes: u64,
    /// How many of these bytes are in pages with values.
    pub used: u64,
}

impl SpaceUsage {
    /// How many bytes of the file are unused.
    pub fn dead(self) -> u64 {
        self.bytes.saturating_sub(self.used)
    }

    /// Whether at least half of the file is unused.
    pub(crate) fn is_half_unused(&self) -> bool {
        self.dead() >= self.bytes / 2
    }
}

impl Store {
    /// Measures the used space of the file on a thread of low priority. Reads the whole file, each table from a snapshot of
    /// its own.
    pub(crate) async fn space(&self) -> Result<SpaceUsage> {
        let store = self.clone();
        let measure = move || {
            let bytes = store.size_on_disk()?;
            let used = Table::ALL.iter().map(|table| store.snapshot()?.size(*table));
            Ok(SpaceUsage { bytes, used: used.sum::<Result<u64>>()? })
        };
        run_low_priority(Priority::Upkeep, measure).await?
    }

    /// Fails unless a copy of the file leaves `reserve` bytes of the disk free.
    ///
    /// # Errors
    /// 503 when it does not.
    pub(crate) fn require_room(&self, reserve: u64) -> Result<()> {
        // The size of a file that has lost its name is unknown, and that file must be backed up.
        let size = self.size_on_disk().unwrap_or(0);
        match FreeSpace::of(self).get() {
            Some(room) if room.free < reserve.saturating_add(size) => {
                let text = "a copy of the data file would leave less than --disk-reserve free";
                Err(unavailable(text))
            }
            _ => Ok(()),
        }
    }

    /// Returns the size of the file on disk, in bytes.
    pub(crate) fn size_on_disk(&self) -> Result<u64> {
        let length = self.size()?;
        let on_disk = self.path().metadata().map_or(length, |file| file.blocks() * BLOCK);
        Ok(length.min(on_disk))
    }

    /// Returns the length of the file in bytes.
    pub(in crate::store) fn size(&self) -> Result<u64> {
        let file = self.fs.file_system().open(self.path());
        let size = file.and_then(|file| file.len());
        size.map_err(unavailable)
    }
}
