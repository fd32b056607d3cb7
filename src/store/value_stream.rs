//! A stream of values: what a server sends to a command that makes a backup or an export.

use std::io::{self, BufReader, BufWriter, Read, Write};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::error::{Error, Result};

use super::progress::Steps;
use super::schema::{FORMAT, Table};

/// Called with a table, a key and its sealed value; `None` for a removed value.
pub(super) type Visitor<'t> = dyn FnMut(Table, &[u8], Option<&[u8]>) -> Result<()> + 't;

/// A table, a key and its sealed value; `None` for a removed value.
pub(super) type Value = (Table, Vec<u8>, Option<Vec<u8>>);

/// The version of this protocol.
const VERSION: u64 = 2;
/// The byte before a stored value.
const STORED: u8 = 1;
/// The byte before a removed value.
const REMOVED: u8 = 2;
/// The byte after the last value.
const END: u8 = 0;

/// Writes a value: what it is, the index of its table in [`Table::ALL`], its key and the sealed value, each of the last two
/// after its length.
pub(super) fn write_value(
    out: &mut impl Write,
    table: Table,
    key: &[u8],
    sealed: Option<&[u8]>,
) -> io::Result<()> {
    out.write_all(&[if sealed.is_some() { STORED } else { REMOVED }, table as u8])?;
    for part in std::iter::once(key).chain(sealed) {
        out.write_all(&(part.len() as u64).to_be_bytes())?;
        out.write_all(part)?;
    }
    Ok(())
}

/// Reads what [`write_value`] wrote. Returns `None` at the byte after the last value.
pub(super) fn read_value(from: &mut impl Read) -> io::Result<Option<Value>> {
    let [what] = read_bytes(from)?;
    if what == END {
        return Ok(None);
    }
    let [place] = read_bytes(from)?;
    let table = Table::ALL.get(usize::from(place)).ok_or(io::ErrorKind::InvalidData)?;
    let key = read_text(from)?;
    let sealed = match what {
        STORED => Some(read_text(from)?),
        REMOVED => None,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok(Some((*table, key, sealed)))
}

fn read_text(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = read_number(from)?;
    let mut out = Vec::new();
    let read = from.take(length).read_to_end(&mut out)?;
    if read as u64 == length { Ok(out) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn read_number(from: &mut impl Read) -> io::Result<u64> {
    read_bytes(from).map(u64::from_be_bytes)
}

fn read_bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn interrupted(cause: &io::Error) -> Error {
    Error::invalid("broken_off", format!("the values broke off: {cause}"))
}

/// Identifies the tables of this release and their order, because a stream names a table by its index.
fn tables_id() -> u64 {
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    xxh3_64(names.join("\n").as_bytes())
}

/// A reader or writer that adds up what passes.
struct Summed<T> {
    inner: T,
    sum: Xxh3Default,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: Xxh3Default::new() }
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.sum.update(out.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// Writes a stream: the version of the protocol, the format, the id of the tables and about how many values follow. Then
/// the values, of which the last one of a key counts, how many there are in the end, and a checksum of everything before.
pub(super) struct StreamWriter<W: Write> {
    out: Summed<BufWriter<W>>,
}

impl<W: Write> StreamWriter<W> {
    /// Begins a stream of about `of` values.
    pub(super) fn begin(out: W, of: u64) -> io::Result<Self> {
        let mut stream = Self { out: Summed::new(BufWriter::new(out)) };
        for number in [VERSION, FORMAT, tables_id(), of] {
            stream.out.write_all(&number.to_be_bytes())?;
        }
        Ok(stream)
    }

    /// Writes a value, or the removal of one.
    pub(super) fn add(
        &mut self,
        table: Table,
        key: &[u8],
        sealed: Option<&[u8]>,
    ) -> io::Result<()> {
        write_value(&mut self.out, table, key, sealed)
    }

    /// Ends the stream, which has left `values` values, and returns the writer below it.
    pub(super) fn end(mut self, values: u64) -> io::Result<W> {
        self.out.write_all(&[END])?;
        self.out.write_all(&values.to_be_bytes())?;
        let sum = self.out.sum.digest();
        self.out.write_all(&sum.to_be_bytes())?;
        self.out.inner.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// Reads what a [`StreamWriter`] wrote.
pub(super) struct ValueStream<R> {
    from: Summed<BufReader<R>>,
}

impl<R: Read> ValueStream<R> {
    /// Reads the start of a stream. Also returns about how many values follow.
    pub(super) fn open(from: R) -> Result<(Self, u64)> {
        let mut from = Summed::new(BufReader::new(from));
        let mut number = || read_number(&mut from).map_err(|cause| interrupted(&cause));
        let (version, format, tables, of) = (number()?, number()?, number()?, number()?);
        if (version, format, tables) != (VERSION, FORMAT, tables_id()) {
            let text = "the server is a different release; run the command with the same release";
            return Err(Error::invalid("another_release", text));
        }
        Ok((Self { from }, of))
    }

    /// Calls `take` with every value and removal. Returns how many values there are in the end.
    pub(super) fn each(&mut self, steps: &mut Steps, take: &mut Visitor<'_>) -> Result<u64> {
        let next = |from: &mut _| read_value(from).map_err(|cause| interrupted(&cause));
        while let Some((table, key, sealed)) = next(&mut self.from)? {
            steps.advance();
            take(table, &key, sealed.as_deref())?;
        }
        self.end().map_err(|cause| interrupted(&cause))
    }

    fn end(&mut self) -> io::Result<u64> {
        let values = read_number(&mut self.from)?;
        let sum = self.from.sum.digest();
        if read_number(&mut self.from)? == sum {
            return Ok(values);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum does not match"))
    }
}
