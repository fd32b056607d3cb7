//! `backup`: writes the state of the last commit to a file. The state comes from a store of this process, or from the copy that
//! a server sends to a command: the bytes of a data file.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use redb::Database;
use serde::Serialize;

use crate::base::error::{Error, Result};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::store::changes::file_copy::{PAGE_CACHE, fill, open_unnamed, require_length};
use crate::store::disk::engine::{begin, close, unavailable};
use crate::store::disk::file::{self, FileLock, Owner, folder_of};
use crate::store::disk::file_system::{FileReader, FsHandle, unnamed_file};
use crate::store::disk::open_error::OpenError;
use crate::store::disk::place::ShownPath;
use crate::store::format::migrate::is_of_this_release;
use crate::store::kinds::record_registry::RecordRegistry;
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;
use crate::store::writer::Store;

use super::check::check_database;

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
        let walk = self.begin_sliced_walk(&tables).await?;
        // A failed sync of the backup says nothing about the data file.
        let fs = self.fs.separate();
        let write = move || {
            let _under_way = walk_begun;
            let mut steps = progress.begin("copying", walk.of);
            complete(&fs, &to, || {
                file::create(&fs, &to, Owner::Caller, PAGE_CACHE, |database| {
                    let values =
                        fill(begin(database)?, |visit| walk.each(&tables, &mut steps, visit))?;
                    require_length(database, values)?;
                    require_valid(&to, database, &registry, &progress)?;
                    Ok(values)
                })
            })
        };
        run_low_priority(Priority::Upkeep, write).await?
    }
}

/// Writes the copy that a server sends to a new file at `to`, as [`Store::backup`] does.
///
/// # Errors
/// The errors of [`Store::backup`]; also when the copy breaks off or comes from a different release.
pub fn receive(
    copy: SentCopy<impl Read>,
    to: &Path,
    registry: &RecordRegistry,
    progress: &Progress,
) -> Result<Backup, OpenError> {
    let fs = FsHandle::os();
    complete(&fs, to, || {
        let write = |draft: &Path| {
            progress.begin("receiving", 0);
            copy.write_to(&fs, draft, |database| {
                let values = Snapshot::begin(database)?.values()?;
                require_valid(to, database, registry, progress)?;
                Ok(values)
            })
        };
        file::create_as(&fs, to, write, |draft| file::publish(&fs, draft, to))
    })
}

/// Removes what an interrupted backup to `to` left, unless a process writes that backup now.
///
/// # Errors
/// When the operating system reports an error.
pub fn remove_incomplete_backup(to: &Path) -> Result<(), OpenError> {
    let lock = match FileLock::acquire(to) {
        Err(OpenError::InUse(_)) => return Ok(()),
        taken => taken?,
    };
    let removed = file::remove_draft(&FsHandle::os(), to);
    lock.remove();
    removed
}

/// Creates a backup with `create`, which returns how many values it has.
fn complete(
    fs: &FsHandle,
    to: &Path,
    create: impl FnOnce() -> Result<u64, OpenError>,
) -> Result<Backup, OpenError> {
    file::require_absent(fs, to)?;
    let lock = FileLock::acquire_on(fs, to)?;
    let created = create();
    lock.release();
    let values = created?;
    let (bytes, blake3) = hash(fs, to).map_err(OpenError::io("read", to))?;
    Ok(Backup { file: ShownPath(to.to_owned()), values, bytes, blake3 })
}

/// Checks a file that nothing else has open.
pub fn require_valid(
    path: &Path,
    database: &mut Database,
    registry: &RecordRegistry,
    progress: &Progress,
) -> Result<(), OpenError> {
    let report = check_database(database, registry, progress)?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => Err(OpenError::Other(format!(
            "nothing was written, because {} would be inconsistent ({problem}; problems in all: {}); see `steward check`",
            path.display(),
            report.problem_count
        ))),
    }
}

fn hash(fs: &FsHandle, path: &Path) -> io::Result<(u64, String)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(FileReader::open(fs, path)?)?;
    Ok((hasher.count(), hasher.finalize().to_hex().to_string()))
}

/// The size of the pieces in which a copy arrives, in bytes.
const PIECE_SIZE: usize = 64 * 1024;

impl Store {
    /// Copies the state of a commit to an unnamed file, which is a data file. It is the last commit, or one that followed
    /// meanwhile. Reads and writes continue.
    ///
    /// # Errors
    /// 500 for a damaged value, 503 when the file cannot be read or the disk has no room for the copy.
    #[doc(hidden)]
    pub async fn copy_to_unnamed(&self, progress: Progress) -> Result<File> {
        let walk_begun = self.begin_walk().await;
        let tables = Table::backed_up();
        let walk = self.begin_sliced_walk(&tables).await?;
        let folder = folder_of(self.path()).to_owned();
        let copy = move || {
            let _under_way = walk_begun;
            let mut steps = progress.begin("copying", walk.of);
            let mut file = unnamed_file(&folder).map_err(unavailable)?;
            let database = open_unnamed(file.try_clone().map_err(unavailable)?)?;
            let filling = begin(&database)?;
            let values = fill(filling, |visit| walk.each(&tables, &mut steps, visit))?;
            require_length(&database, values)?;
            close(database)?;
            file.rewind().map_err(unavailable)?;
            Ok(file)
        };
        run_low_priority(Priority::Upkeep, copy).await?
    }
}

/// The bytes of a copy that a server sends.
#[derive(Debug)]
pub struct SentCopy<R> {
    /// Where the bytes come from.
    pub from: R,
    /// How many bytes there are.
    pub size: u64,
}

impl<R: Read> SentCopy<R> {
    /// Writes the copy to a new file at `draft`, and passes it to `check` as a database. Syncs its bytes.
    pub(in crate::store) fn write_to<T>(
        self,
        fs: &FsHandle,
        draft: &Path,
        check: impl FnOnce(&mut Database) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        let file = file::new_draft(fs, draft)?;
        self.each_piece(|at, piece| file.write(at, piece).map_err(OpenError::io("write", draft)))?;
        file::change_draft(fs, draft, &file, PAGE_CACHE, |database| {
            require_this_release(database, draft)?;
            check(database)
        })
    }

    /// Writes the copy to `file`, which has no name and is in `folder`, and opens it.
    pub(in crate::store) fn open_in(
        self,
        file: File,
        folder: &Path,
    ) -> Result<Database, OpenError> {
        self.each_piece(|at, piece| {
            file.write_all_at(piece, at).map_err(OpenError::io("write to", folder))
        })?;
        let database = open_unnamed(file)?;
        require_this_release(&database, folder)?;
        Ok(database)
    }

    /// Calls `visit` with all bytes in pieces, each after its position.
    fn each_piece(
        self,
        mut visit: impl FnMut(u64, &[u8]) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let Self { mut from, size } = self;
        let mut buffer = vec![0; PIECE_SIZE];
        let mut at = 0;
        while at < size {
            let left = usize::try_from(size - at).unwrap_or(usize::MAX);
            let (piece, _) = buffer.split_at_mut(left.min(PIECE_SIZE));
            from.read_exact(piece).map_err(|cause| {
                Error::invalid("broken_off", format!("the copy broke off: {cause}"))
            })?;
            visit(at, piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }
}

fn require_this_release(database: &Database, path: &Path) -> Result<(), OpenError> {
    match is_of_this_release(database, path) {
        Ok(false) | Err(OpenError::Newer { .. }) => {
            let text = "the server is a different release; run the command with the same release";
            Err(Error::invalid("another_release", text).into())
        }
        checked => checked.map(drop),
    }
}
