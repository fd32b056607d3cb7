//! How much free space the file system of the data file has.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Store;
use super::disk::{Drive, Space};
use super::file::folder_of;

/// How long the result of a look at the file system is used.
const FRESH: Duration = Duration::from_secs(1);
/// How many bytes of the disk a byte of a record takes, with indexes and pages that are written anew.
const COST: u64 = 4;

/// The free space of a data file's file system, looked at once a second at most. Between two looks, what is added
/// is taken off.
#[derive(Debug)]
pub struct FreeSpace {
    drive: Drive,
    folder: PathBuf,
    last: Mutex<Option<Look>>,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    space: Option<Space>,
}

impl FreeSpace {
    /// The free space where `store` has its file.
    pub fn of(store: &Store) -> Self {
        let folder = folder_of(store.path()).to_owned();
        Self { drive: store.drive.clone(), folder, last: Mutex::default() }
    }

    /// How much there is; none where the file system does not tell.
    pub fn look(&self) -> Option<Space> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some(look) if look.at.elapsed() < FRESH => look.space,
            _ => last.insert(Look { at: Instant::now(), space: self.ask() }).space,
        }
    }

    /// Says that records of so many bytes are added.
    pub fn take(&self, bytes: u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Look { space: Some(space), .. }) = last.as_mut() {
            space.free = space.free.saturating_sub(bytes.saturating_mul(COST));
        }
    }

    fn ask(&self) -> Option<Space> {
        self.drive.disk().space(&self.folder).unwrap_or_else(|error| {
            tracing::warn!(%error, "the free space of the file system cannot be read");
            None
        })
    }
}
