//! `backup`: writes the state of the last commit to a file. The state comes from a store of this process, or
//! from a server as a stream.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use redb::Database;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

use super::Store;
use super::check::{check_snapshot, check_structure};
use super::engine::{RETRY_AFTER, begin, begin_read, definition, storage_error};
use super::file::{self, FileLock};
use super::file_system::{FileReader, FsHandle};
use super::key::Key;
use super::open_error::OpenError;
use super::panics::catch_panic;
use super::progress::{Progress, Steps};
use super::record_registry::RecordRegistry;
use super::schema::{FORMAT, Table};
use super::sealed::{damaged, seal};
use super::snapshot::Snapshot;
use crate::low_priority::{Priority, run_low_priority};

/// The page cache for a file that is written and read once: 16 MiB.
const PAGE_CACHE: usize = 16 * 1024 * 1024;

/// A completed backup.
#[derive(Debug, Clone, Serialize)]
pub struct Backup {
    /// The path of the backup.
    pub file: PathBuf,
    /// How many values it contains.
    pub values: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of the file, as `b3sum` prints it.
    pub blake3: String,
}

/// Called with each value: its table, its key and its payload.
pub(super) type Visitor<'t> = dyn FnMut(Table, &[u8], &[u8]) -> Result<()> + 't;

impl Store {
    /// Writes the state of the last commit to a new file at `to` and checks that file. The file appears
    /// complete or not at all. Reads and writes continue meanwhile.
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
        let (walk_begun, snapshot) = self.begin_walk().await?;
        // A failed sync of the backup says nothing about the data file.
        let fs = self.fs.separate();
        let write = move || {
            let _under_way = walk_begun;
            let tables = Table::backed_up();
            write(&fs, &to, snapshot.values_of(&tables)?, &registry, &progress, |take| {
                each_value(&snapshot, &tables, take)
            })
        };
        run_low_priority(Priority::Upkeep, write).await?
    }

    /// Streams the state of the last commit to `out`, for [`receive`] to read.
    ///
    /// # Errors
    /// 500 for a damaged value, 503 when the file cannot be read or `out` cannot be written.
    #[doc(hidden)]
    pub async fn stream(&self, out: impl Write + Send + 'static) -> Result<()> {
        let (walk_begun, snapshot) = self.begin_walk().await?;
        let send = move || {
            let _under_way = walk_begun;
            send(&snapshot, out)
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
    write(&FsHandle::os(), to, of, registry, progress, |take| stream.each(take))
}

fn interrupted(cause: &io::Error) -> Error {
    Error::invalid("broken_off", format!("the server's response broke off: {cause}"))
}

/// Calls `take` with every value of these tables, after verifying its checksum.
pub(super) fn each_value(
    snapshot: &Snapshot,
    tables: &[Table],
    take: &mut Visitor<'_>,
) -> Result<()> {
    tables.iter().try_for_each(|table| {
        catch_panic(|| snapshot.each(*table, &mut |key, payload| take(*table, key, payload?)))
            .unwrap_or_else(|| Err(damaged(*table, &"redb panicked while reading it")))
    })
}

/// Creates a file from the `of` values that `source` passes on, table by table.
fn write(
    fs: &FsHandle,
    to: &Path,
    of: u64,
    registry: &RecordRegistry,
    progress: &Progress,
    source: impl FnOnce(&mut Visitor<'_>) -> Result<()>,
) -> Result<Backup, OpenError> {
    file::require_absent(fs, to)?;
    let lock = FileLock::take(to)?;
    let created = file::create(fs, to, PAGE_CACHE, |database| {
        fill(database, &mut progress.begin("copying", of), source)?;
        require_valid(to, database, registry, progress)
    });
    lock.release();
    created?;
    let (bytes, blake3) = hash(fs, to).map_err(OpenError::io("read", to))?;
    Ok(Backup { file: to.to_owned(), values: of, bytes, blake3 })
}

fn fill(
    database: &Database,
    steps: &mut Steps,
    source: impl FnOnce(&mut Visitor<'_>) -> Result<()>,
) -> Result<()> {
    let transaction = begin(database)?;
    for table in Table::ALL {
        transaction.open_table(definition(*table)).map_err(storage_error)?;
    }
    let mut target = None;
    source(&mut |table, key, payload| {
        let (_, opened) = match target.take() {
            Some((name, opened)) if name == table => target.insert((name, opened)),
            other => {
                drop(other);
                let opened = transaction.open_table(definition(table)).map_err(storage_error)?;
                target.insert((table, opened))
            }
        };
        opened.insert(key, seal(table, key, payload).as_slice()).map_err(storage_error)?;
        steps.advance();
        Ok(())
    })?;
    drop(target);
    transaction.commit().map_err(storage_error)
}

/// Checks a file that nothing else has open.
pub(super) fn require_valid(
    path: &Path,
    database: &mut Database,
    registry: &RecordRegistry,
    progress: &Progress,
) -> Result<(), OpenError> {
    let snapshot = Snapshot::new(begin_read(database)?, Box::new(|| ()));
    let mut report = check_snapshot(&snapshot, registry, progress);
    drop(snapshot);
    check_structure(database, progress, &mut report);
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

/// The byte before each value of a stream. Any other byte ends the stream.
const VALUE_FOLLOWS: u8 = 1;

/// Writes the format, the id of the tables and the number of values. Then, for each value: the index of its table in
/// [`Table::ALL`], its key and its payload, each of the two after its length.
fn send(snapshot: &Snapshot, out: impl Write) -> Result<()> {
    let refused = |cause: io::Error| Error::unavailable(RETRY_AFTER, cause);
    let mut out = BufWriter::new(out);
    let tables = Table::backed_up();
    let values = snapshot.values_of(&tables)?;
    let begin = [FORMAT.encoded(), tables_id().encoded(), values.encoded()].concat();
    out.write_all(&begin).map_err(refused)?;
    each_value(snapshot, &tables, &mut |table, key, payload| {
        let lengths = [key, payload].map(|part| (part.len() as u64).encoded());
        let parts =
            [&[VALUE_FOLLOWS, table as u8], lengths[0].as_slice(), key, &lengths[1], payload];
        parts.iter().try_for_each(|part| out.write_all(part)).map_err(refused)
    })?;
    out.write_all(&[0]).and_then(|()| out.flush()).map_err(refused)
}

/// Identifies the tables of this release and their order, because a stream names a table by its index.
fn tables_id() -> u64 {
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    xxh3_64(names.join("\n").as_bytes())
}

/// A table, a key and a payload.
type Value = (Table, Vec<u8>, Vec<u8>);

/// Reads a stream that [`send`] wrote.
pub(super) struct ValueStream<R>(BufReader<R>);

impl<R: Read> ValueStream<R> {
    /// Reads the start of a stream. Also returns how many values follow.
    pub(super) fn open(from: R) -> Result<(Self, u64)> {
        let mut stream = Self(BufReader::new(from));
        let mut number = || stream.number().map_err(|cause| interrupted(&cause));
        let (format, tables, of) = (number()?, number()?, number()?);
        if (format, tables) != (FORMAT, tables_id()) {
            let text = "the server is a different release; run the command with the same release";
            return Err(Error::invalid("another_release", text));
        }
        Ok((stream, of))
    }

    /// Calls `take` with every value.
    pub(super) fn each(&mut self, take: &mut Visitor<'_>) -> Result<()> {
        while let Some((table, key, payload)) = self.next().map_err(|cause| interrupted(&cause))? {
            take(table, &key, &payload)?;
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<Value>> {
        let [more] = self.bytes()?;
        if more != VALUE_FOLLOWS {
            return Ok(None);
        }
        let [place] = self.bytes()?;
        let table = Table::ALL.get(usize::from(place)).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some((*table, self.text()?, self.text()?)))
    }

    fn text(&mut self) -> io::Result<Vec<u8>> {
        let length = self.number()?;
        let mut out = Vec::new();
        let read = (&mut self.0).take(length).read_to_end(&mut out)?;
        if read as u64 == length { Ok(out) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn number(&mut self) -> io::Result<u64> {
        self.bytes().map(u64::from_be_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
