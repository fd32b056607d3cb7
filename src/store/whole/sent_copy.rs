//! The copy of the data that a server sends to a command: the bytes of a data file.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::Path;

use redb::Database;

use crate::base::error::{Error, Result};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::store::changes::file_copy::{PAGE_CACHE, fill, open_unnamed, require_length};
use crate::store::disk::engine::{RETRY_AFTER, begin, close};
use crate::store::disk::file::{change_draft, folder_of, new_draft};
use crate::store::disk::file_names::unnamed_file;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::format::migrate::is_of_this_release;
use crate::store::reads::progress::Progress;
use crate::store::values::schema::Table;
use crate::store::writer::Store;

use super::sliced_walk::SliceLimit;

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
        let walk = self.begin_sliced_walk(&tables, SliceLimit::default()).await?;
        let folder = folder_of(self.path()).to_owned();
        let copy = move || {
            let _under_way = walk_begun;
            let unwritable = |cause: io::Error| Error::unavailable(RETRY_AFTER, cause);
            let mut steps = progress.begin("copying", walk.of);
            let mut file = unnamed_file(&folder).map_err(unwritable)?;
            let database = open_unnamed(file.try_clone().map_err(unwritable)?)?;
            let filling = begin(&database)?;
            let values = fill(filling, |visit| walk.each(&tables, &mut steps, visit))?;
            require_length(&database, values)?;
            close(database)?;
            file.rewind().map_err(unwritable)?;
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
        let file = new_draft(fs, draft)?;
        self.each_piece(|at, piece| file.write(at, piece).map_err(OpenError::io("write", draft)))?;
        change_draft(fs, draft, &file, PAGE_CACHE, |database| {
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
        Ok(false) | Err(OpenError::Newer { .. } | OpenError::NewerTable { .. }) => {
            let text = "the server is a different release; run the command with the same release";
            Err(Error::invalid("another_release", text).into())
        }
        checked => checked.map(drop),
    }
}
