//! The free space of the file system that holds the data file.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Store;
use super::file::folder_of;
use super::file_system::{FreeBytes, FsHandle};

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
    last: Mutex<Option<CachedSpace>>,
}

#[derive(Debug, Clone, Copy)]
struct CachedSpace {
    at: Instant,
    space: Option<FreeBytes>,
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
            Some(measured) if measured.at.elapsed() < CACHE_TIME => measured.space,
            _ => last.insert(CachedSpace { at: Instant::now(), space: self.query() }).space,
        }
    }

    /// Subtracts the disk space for records of `bytes` bytes.
    pub fn note_added(&self, bytes: u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(CachedSpace { space: Some(space), .. }) = last.as_mut() {
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
