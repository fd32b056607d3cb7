//! How much free space the file system of the data file has.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Store;
use super::disk::{Drive, Space};
use super::file::folder_of;

/// How long the result of a look at the file system is used.
const FRESH: Duration = Duration::from_secs(1);

/// The free space of a data file's file system, looked at once a second at most.
#[derive(Debug)]
pub struct FreeSpace {
    drive: Drive,
    folder: PathBuf,
    last: Mutex<Option<(Instant, Option<Space>)>>,
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
        if let Some((at, space)) = *last
            && at.elapsed() < FRESH
        {
            return space;
        }
        let space = self.drive.disk().space(&self.folder).unwrap_or_else(|error| {
            tracing::warn!(%error, "the free space of the file system cannot be read");
            None
        });
        *last = Some((Instant::now(), space));
        space
    }
}
