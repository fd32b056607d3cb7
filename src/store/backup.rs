//! `backup`: writes the state of the last commit to a file. The state comes from a store of this process, or
//! from a server as a stream.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use redb::Database;
use serde::Serialize;

use crate::error::{Error, Result};

use super::Store;
use super::check::check_database;
use super::engine::{RETRY_AFTER, begin};
use super::file::{self, FileLock, Owner};
use super::file_system::{FileReader, FsHandle};
use super::fill::{PAGE_CACHE, fill, require_length};
use super::open_error::OpenError;
use super::progress::{Progress, Steps};
use super::record_registry::RecordRegistry;
use super::schema::Table;
use super::shown_path::ShownPath;
use super::sliced_walk::SliceLimit;
use super::value_stream::{StreamWriter, ValueStream, Visitor};
use crate::low_priority::{Priority, run_low_priority};

/// A completed backup.
#[derive(Debug, Clone, Serialize)]
pub struct Backup {
    /// The path of the backup.
    pub file: ShownPath,
    /// How many values it contains.
    pub values: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of the file, as `b3sum` prints it.
    pub blake3: String,
}

impl Store {
    /// Writes the state of a commit to a new file at `to` and checks that file. It is the last commit, or one that followed
    /// meanwhile. The file appears complete or not at all. Reads and writes continue.
    ///
    /// # Errors
    /// When a file already exists, the state is inconsistent, or the operating system reports an error.
    /// Nothing is left at `to` then.
    #[doc(hidden)]
    pub async fn backup(
        &self,
        to: PathBuf,
        registry: RecordRegistry,
        progress: Progress,
    ) -> Result<Backup, OpenError> {
        let walk_begun = self.begin_walk().await;
        let tables = Table::backed_up();
        let walk = self.begin_sliced_walk(&tables, SliceLimit::default()).await?;
        // A failed sync of the backup says nothing about the data file.
        let fs = self.fs.separate();
        let write = move || {
            let _under_way = walk_begun;
            let mut steps = progress.begin("copying", walk.of);
            write(&fs, &to, &registry, &progress, |take| walk.each(&tables, &mut steps, take))
        };
        run_low_priority(Priority::Upkeep, write).await?
    }

    /// Streams the state of a commit to `out`, for [`receive`] to read. It is the last commit, or one that followed
    /// meanwhile.
    ///
    /// # Errors
    /// 500 for a damaged value, 503 when the file cannot be read or `out` cannot be written.
    #[doc(hidden)]
    pub async fn stream(&self, out: impl Write + Send + 'static) -> Result<()> {
        let walk_begun = self.begin_walk().await;
        let tables = Table::backed_up();
        let walk = self.begin_sliced_walk(&tables, SliceLimit::default()).await?;
        let send = move || {
            let _under_way = walk_begun;
            let refused = |cause: io::Error| Error::unavailable(RETRY_AFTER, cause);
            let mut stream = StreamWriter::begin(out, walk.of).map_err(refused)?;
            let mut add = |table: Table, key: &[u8], sealed: Option<&[u8]>| {
                stream.add(table, key, sealed).map_err(refused)
            };
            let values = walk.each(&tables, &mut Steps::default(), &mut add)?;
            stream.end(values).and_then(|mut out| out.flush()).map_err(refused)
        };
        run_low_priority(Priority::Upkeep, send).await?
    }
}

/// Writes the [stream](Store::stream) of a server to a new file at `to`, as [`Store::backup`] does.
///
/// # Errors
/// The errors of [`Store::backup`]; also when the stream breaks off or comes from a different release.
pub fn receive(
    from: impl Read,
    to: &Path,
    registry: &RecordRegistry,
    progress: &Progress,
) -> Result<Backup, OpenError> {
    let (mut stream, of) = ValueStream::open(from)?;
    let mut steps = progress.begin("copying", of);
    write(&FsHandle::os(), to, registry, progress, |take| stream.each(&mut steps, take))
}

/// Removes what an interrupted backup to `to` left, unless a process writes that backup now.
///
/// # Errors
/// When the operating system reports an error.
pub fn remove_incomplete_backup(to: &Path) -> Result<(), OpenError> {
    let lock = match FileLock::take(to) {
        Err(OpenError::InUse(_)) => return Ok(()),
        taken => taken?,
    };
    let removed = file::remove_draft(&FsHandle::os(), to);
    lock.remove();
    removed
}

/// Creates a file from the values that `source` passes on. `source` returns how many values they leave.
fn write(
    fs: &FsHandle,
    to: &Path,
    registry: &RecordRegistry,
    progress: &Progress,
    source: impl FnOnce(&mut Visitor<'_>) -> Result<u64>,
) -> Result<Backup, OpenError> {
    file::require_absent(fs, to)?;
    let lock = FileLock::take(to)?;
    let mut values = 0;
    let created = file::create(fs, (to, Owner::Caller), PAGE_CACHE, |database| {
        values = fill(begin(database)?, source)?;
        require_length(database, values)?;
        require_valid(to, database, registry, progress)
    });
    lock.release();
    created?;
    let (bytes, blake3) = hash(fs, to).map_err(OpenError::io("read", to))?;
    Ok(Backup { file: ShownPath(to.to_owned()), values, bytes, blake3 })
}

/// Checks a file that nothing else has open.
pub(super) fn require_valid(
    path: &Path,
    database: &mut Database,
    registry: &RecordRegistry,
    progress: &Progress,
) -> Result<(), OpenError> {
    let report = check_database(database, registry, progress)?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => Err(OpenError::Unsound {
            path: path.to_owned(),
            problem: problem.clone(),
            count: report.problem_count,
        }),
    }
}

fn hash(fs: &FsHandle, path: &Path) -> io::Result<(u64, String)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(FileReader::open(fs, path)?)?;
    Ok((hasher.count(), hasher.finalize().to_hex().to_string()))
}
