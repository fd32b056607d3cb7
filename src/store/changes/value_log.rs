//! What commits change while the file is copied: each changed value, in the order of the changes, in an unnamed file.
//!
//! The values of a copy come from many snapshots. Once the changes of all commits since its begin are applied to it, in
//! their order, it equals the file after the last of these commits: a value that no commit changed is the same in every
//! snapshot.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

use crate::base::error::Result;
use crate::store::disk::engine::unavailable;
use crate::store::disk::file_system::FsHandle;
use crate::store::values::schema::Table;

/// Called with a table, a key and its sealed value; `None` for a removed value.
pub type Visitor<'t> = dyn FnMut(Table, &[u8], Option<&[u8]>) -> Result<()> + 't;

/// A changed value, as the log has it after its length.
#[derive(Serialize, Deserialize)]
struct LoggedValue<'v> {
    /// The index of the table in [`Table::ALL`].
    table: u8,
    #[serde(borrow)]
    key: &'v Bytes,
    /// The sealed value; `None` if it was removed.
    #[serde(borrow)]
    sealed: Option<&'v Bytes>,
}

/// Reads the bytes of a [`LoggedValue`].
fn read_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_be_bytes(length);
    let mut bytes = Vec::new();
    let read = from.take(length).read_to_end(&mut bytes)?;
    if read as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The values that commits changed since the log began.
pub struct ValueLog {
    file: File,
    written: Mutex<Written>,
}

struct Written {
    out: BufWriter<File>,
    /// The length of what was written, in bytes.
    length: u64,
    /// The length of the changes that are committed.
    committed: u64,
    /// Whether later commits are left out.
    is_over: bool,
    /// Why the log is incomplete. A commit does not fail for it.
    failed: Option<io::Error>,
}

impl Written {
    fn add(&mut self, value: &LoggedValue<'_>) -> io::Result<()> {
        let bytes = postcard::to_stdvec(value);
        let bytes = bytes.map_err(|error| io::Error::other(error.to_string()))?;
        self.out.write_all(&(bytes.len() as u64).to_be_bytes())?;
        self.out.write_all(&bytes)?;
        self.length += 8 + bytes.len() as u64;
        Ok(())
    }

    fn note(&mut self, outcome: io::Result<()>) {
        if let Err(cause) = outcome {
            self.failed.get_or_insert(cause);
        }
    }
}

impl ValueLog {
    /// Creates an empty log in `folder`. A crash leaves nothing behind.
    pub fn new(fs: &FsHandle, folder: &Path) -> io::Result<Self> {
        let file = fs.file_system().create_unnamed(folder)?;
        let out = BufWriter::new(file.try_clone()?);
        let written = Written { out, length: 0, committed: 0, is_over: false, failed: None };
        Ok(Self { file, written: Mutex::new(written) })
    }

    /// Adds a change of the commit under way.
    pub fn add(&self, table: Table, key: &[u8], sealed: Option<&[u8]>) {
        let mut written = self.written();
        if !written.is_over && written.failed.is_none() {
            let outcome = written.add(&LoggedValue {
                table: table as u8,
                key: Bytes::new(key),
                sealed: sealed.map(Bytes::new),
            });
            written.note(outcome);
        }
    }

    /// Ends the commit under way.
    pub fn end_commit(&self) {
        let mut written = self.written();
        let outcome = written.out.flush();
        written.note(outcome);
        written.committed = written.length;
    }

    /// Forgets what was added since the last commit.
    fn undo(&self) {
        let mut written = self.written();
        if written.length > written.committed {
            let committed = written.committed;
            let outcome = written.out.seek(SeekFrom::Start(committed)).map(drop);
            written.note(outcome);
            written.length = committed;
        }
    }

    /// Leaves out all later commits. Call this on the writer thread, between two transactions.
    pub fn end(&self) {
        self.written().is_over = true;
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `visit` with the committed changes from the byte `from` on. Returns the byte at which they end.
    ///
    /// # Errors
    /// 503 when the log could not be written or cannot be read.
    pub fn each_from(&self, from: u64, visit: &mut Visitor<'_>) -> Result<u64> {
        let end = {
            let written = self.written();
            if let Some(cause) = &written.failed {
                return Err(unavailable(cause));
            }
            written.committed
        };
        let mut changes = BufReader::new(Part { file: &self.file, at: from, end });
        while !changes.fill_buf().map_err(unavailable)?.is_empty() {
            let bytes = read_bytes(&mut changes).map_err(unavailable)?;
            let value: LoggedValue<'_> = postcard::from_bytes(&bytes).map_err(unavailable)?;
            let table = Table::ALL.get(usize::from(value.table));
            let table = table.ok_or_else(|| unavailable("a change of no table"))?;
            visit(*table, value.key, value.sealed.map(|sealed| &**sealed))?;
        }
        Ok(end)
    }
}

/// A part of the file, read without moving the place at which it is written.
struct Part<'f> {
    file: &'f File,
    at: u64,
    end: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = left.min(out.len());
        let (out, _) = out.split_at_mut(length);
        let read = self.file.read_at(out, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The logs of the copies under way.
#[derive(Default)]
pub struct ValueLogs(Mutex<Vec<Weak<ValueLog>>>);

impl ValueLogs {
    /// Begins a log. Call this on the writer thread, between two transactions: a log has all changes of a commit or none.
    /// The log ends when it is dropped.
    pub fn begin(&self, log: &Arc<ValueLog>) {
        self.logs().push(Arc::downgrade(log));
    }

    /// Begins a commit. Returns the logs that note its changes, without what a commit that failed has added.
    pub(super) fn begin_commit(&self) -> Vec<Arc<ValueLog>> {
        let mut logs = self.logs();
        logs.retain(|log| log.strong_count() > 0);
        let active: Vec<_> = logs.iter().filter_map(Weak::upgrade).collect();
        for log in &active {
            log.undo();
        }
        active
    }

    fn logs(&self) -> MutexGuard<'_, Vec<Weak<ValueLog>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
