//! `backup`: the state that one commit left, as a file of its own. It may come out of a store of this process or,
//! as a stream, out of a server's.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use redb::Database;
use serde::Serialize;

use crate::error::{Error, Result};

use super::Store;
use super::check::{Checks, check_snapshot, check_structure};
use super::disk::{Drive, Reading};
use super::engine::{RETRY_AFTER, begin, begin_read, definition, storage_error};
use super::file::{self, Lock};
use super::key::Key;
use super::open_error::OpenError;
use super::panics::caught;
use super::progress::{Progress, Steps};
use super::record::{damaged, seal};
use super::schema::{FORMAT, Table};
use super::snapshot::Snapshot;
use crate::background::{Priority, in_background};

/// The page cache of a file that is written once and read once: 16 MiB.
const CACHE: usize = 16 * 1024 * 1024;

/// A backup that was made.
#[derive(Debug, Clone, Serialize)]
pub struct Backup {
    /// Where it is.
    pub file: PathBuf,
    /// How many values it holds.
    pub values: u64,
    /// How large it is.
    pub bytes: u64,
    /// The BLAKE3 hash of the file, as `b3sum` tells it.
    pub blake3: String,
}

/// What is done with each value: its table, its key and its payload.
pub(super) type Take<'t> = dyn FnMut(Table, &[u8], &[u8]) -> Result<()> + 't;

impl Store {
    /// Writes the state that the last commit left to a new file at `to`, checks that file, and lets it appear whole
    /// or not at all. Whoever reads and writes goes on beside it.
    ///
    /// # Errors
    /// When there is a file already, the state does not hold together, or the operating system refuses. Nothing is
    /// left at `to` then.
    pub async fn backup(
        &self,
        to: PathBuf,
        checks: Checks,
        progress: Progress,
    ) -> Result<Backup, OpenError> {
        let (walk_begun, snapshot) = self.begin_walk().await?;
        // What becomes of the backup's syncs says nothing of the data file's.
        let drive = self.drive.apart();
        let write = move || {
            let _under_way = walk_begun;
            write(&drive, &to, snapshot.values()?, &checks, &progress, |take| {
                walk(&snapshot, Table::ALL, take)
            })
        };
        in_background(Priority::Upkeep, write).await?
    }

    /// Writes the state that the last commit left to `out`, for [`receive`] at its other end.
    ///
    /// # Errors
    /// 500 for a damaged value, 503 when the file cannot be read or `out` takes no more.
    pub async fn stream(&self, out: impl Write + Send + 'static) -> Result<()> {
        let (walk_begun, snapshot) = self.begin_walk().await?;
        let send = move || {
            let _under_way = walk_begun;
            send(&snapshot, out)
        };
        in_background(Priority::Upkeep, send).await?
    }
}

/// Writes what a server [streams](Store::stream) to a new file at `to`, as [`Store::backup`] does.
///
/// # Errors
/// As [`Store::backup`]; and when the stream breaks off or is another release's.
pub fn receive(
    from: impl Read,
    to: &Path,
    checks: &Checks,
    progress: &Progress,
) -> Result<Backup, OpenError> {
    let (mut stream, of) = Stream::open(from)?;
    write(&Drive::files(), to, of, checks, progress, |take| stream.each(take))
}

fn broken_off(cause: &io::Error) -> Error {
    Error::invalid("broken_off", format!("the server did not send all of it: {cause}"))
}

/// Hands every value of these tables to `take`, its checksum verified.
pub(super) fn walk(snapshot: &Snapshot, tables: &[Table], take: &mut Take<'_>) -> Result<()> {
    tables.iter().try_for_each(|table| {
        caught(|| snapshot.each(*table, &mut |key, payload| take(*table, key, payload?)))
            .unwrap_or_else(|| Err(damaged(*table, &"redb cannot make sense of it")))
    })
}

/// Makes the file of the values that `source` hands over table by table, `of` in all.
fn write(
    drive: &Drive,
    to: &Path,
    of: u64,
    checks: &Checks,
    progress: &Progress,
    source: impl FnOnce(&mut Take<'_>) -> Result<()>,
) -> Result<Backup, OpenError> {
    file::require_absent(drive, to)?;
    let lock = Lock::take(to)?;
    let created = file::create(drive, to, CACHE, |database| {
        fill(database, &mut progress.begin("copying", of), source)?;
        require_sound(to, database, checks, progress)
    });
    lock.withdraw();
    created?;
    let (bytes, blake3) = hash(drive, to).map_err(OpenError::io("read", to))?;
    Ok(Backup { file: to.to_owned(), values: of, bytes, blake3 })
}

fn fill(
    database: &Database,
    steps: &mut Steps,
    source: impl FnOnce(&mut Take<'_>) -> Result<()>,
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
        steps.done();
        Ok(())
    })?;
    drop(target);
    transaction.commit().map_err(storage_error)
}

/// Checks a file that nobody else has open.
pub(super) fn require_sound(
    path: &Path,
    database: &mut Database,
    checks: &Checks,
    progress: &Progress,
) -> Result<(), OpenError> {
    let snapshot = Snapshot::new(begin_read(database)?, Box::new(|| ()));
    let mut findings = check_snapshot(&snapshot, checks, progress);
    drop(snapshot);
    check_structure(database, progress, &mut findings);
    match findings.problems.first() {
        None => Ok(()),
        Some(problem) => Err(OpenError::Unsound {
            path: path.to_owned(),
            problem: problem.clone(),
            count: findings.problem_count,
        }),
    }
}

fn hash(drive: &Drive, path: &Path) -> io::Result<(u64, String)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(Reading::of(drive, path)?)?;
    Ok((hasher.count(), hasher.finalize().to_hex().to_string()))
}

/// What leads each value of a stream; another byte ends it.
const MORE: u8 = 1;

/// Writes the format, the number of values, then for each its table's place in the list, its key and its payload,
/// both led by their lengths.
fn send(snapshot: &Snapshot, out: impl Write) -> Result<()> {
    let refused = |cause: io::Error| Error::unavailable(RETRY_AFTER, cause);
    let mut out = BufWriter::new(out);
    let begin = [FORMAT.encoded(), snapshot.values()?.encoded()].concat();
    out.write_all(&begin).map_err(refused)?;
    walk(snapshot, Table::ALL, &mut |table, key, payload| {
        let lengths = [key, payload].map(|part| (part.len() as u64).encoded());
        let parts = [&[MORE, table as u8], lengths[0].as_slice(), key, &lengths[1], payload];
        parts.iter().try_for_each(|part| out.write_all(part)).map_err(refused)
    })?;
    out.write_all(&[0]).and_then(|()| out.flush()).map_err(refused)
}

/// A table, a key in it and its payload.
type Value = (Table, Vec<u8>, Vec<u8>);

/// Reads what [`send`] wrote.
pub(super) struct Stream<R>(BufReader<R>);

impl<R: Read> Stream<R> {
    /// Reads the beginning; answers besides how many values are to come.
    pub(super) fn open(from: R) -> Result<(Self, u64)> {
        let mut stream = Self(BufReader::new(from));
        let begun = stream.number().and_then(|format| Ok((format, stream.number()?)));
        let (format, of) = begun.map_err(|cause| broken_off(&cause))?;
        if format != FORMAT {
            let text = "the server is another release; use the same one for the command";
            return Err(Error::invalid("another_release", text));
        }
        Ok((stream, of))
    }

    /// Hands every value to `take`.
    pub(super) fn each(&mut self, take: &mut Take<'_>) -> Result<()> {
        while let Some((table, key, payload)) = self.next().map_err(|cause| broken_off(&cause))? {
            take(table, &key, &payload)?;
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<Value>> {
        let [more] = self.bytes()?;
        if more != MORE {
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
