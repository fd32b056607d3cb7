//! `import`: a new data file of the lines of an export. All that they tell is checked before it appears.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use redb::Database;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::secret::{Draw, SigningSecret};

use super::DEFAULT_CACHE;
use super::backup::require_sound;
use super::check::Checks;
use super::disk::Drive;
use super::engine::{begin, storage_error};
use super::export::{EXPORT, Header};
use super::file::{self, Lock};
use super::key::Key;
use super::lines::{self, Anew, Kinds, Line, NO_TABLE, NOT_SO, Secrecy, Told, wrong};
use super::open_error::OpenError;
use super::progress::Progress;
use super::record::Record;
use super::schema::{FORMAT, Table};
use super::write::WriteTx;

/// The longest line: more than any record comes to, and no more than memory has room for.
const LONGEST: u64 = 64 * 1024 * 1024;

/// An import that was done.
#[derive(Debug, Clone, Serialize)]
pub struct Imported {
    /// The data file.
    pub file: PathBuf,
    /// How many lines it was made of, besides the first.
    pub lines: u64,
    /// Whether secrets were among them. Where not, the file has new ones, and no API key.
    pub secrets: bool,
}

/// Makes a data file at `data` of the lines of an export. It appears whole, checked as a backup is, or not at all.
/// What an export without secrets left out is made anew where there must be something.
///
/// # Errors
/// When there is a file already; when a line is not as the export wrote it, told by its number; when the whole does
/// not hold together; when the operating system refuses.
pub fn import(
    data: &Path,
    from: impl BufRead,
    checks: &Checks,
    draw: Draw,
    progress: &Progress,
) -> Result<Imported, OpenError> {
    let drive = Drive::files();
    file::require_absent(&drive, data)?;
    let lock = Lock::take(data)?;
    let mut imported = None;
    let mut reader = Reader { from, line: Vec::new(), number: 0, hasher: blake3::Hasher::new() };
    let created = file::create(&drive, data, DEFAULT_CACHE, |database| {
        let header = reader.header()?;
        let lines = fill(database, &mut reader, &header, checks, draw, progress)?;
        require_sound(data, database, checks, progress)?;
        imported = Some(Imported { file: data.to_owned(), lines, secrets: header.secrets });
        Ok(())
    });
    lock.withdraw();
    created?;
    imported.ok_or_else(|| Error::internal("a new file was not filled").into())
}

/// Reads an export line by line.
struct Reader<R> {
    from: R,
    line: Vec<u8>,
    number: u64,
    /// Of all lines but the first.
    hasher: blake3::Hasher,
}

impl<R: BufRead> Reader<R> {
    /// Reads the next line; answers whether there is one.
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.number += 1;
        let read = self.from.by_ref().take(LONGEST).read_until(b'\n', &mut self.line);
        let read = read.map_err(|cause| {
            Error::invalid("not_imported", format!("line {}: {cause}", self.number))
        })?;
        if read > 0 && !self.line.ends_with(b"\n") {
            let what = if read as u64 == LONGEST { "is too long" } else { "breaks off" };
            return Err(self.told(wrong("", what)));
        }
        Ok(read > 0)
    }

    fn header(&mut self) -> Result<Header> {
        let header = match (self.next()?, std::str::from_utf8(&self.line)) {
            (true, Ok(text)) => lines::parse(text, ""),
            (true, Err(_)) => Err(wrong("", "is no text")),
            (false, _) => Err(wrong("", "is missing")),
        };
        let header: Header = header.map_err(|error| {
            let text = format!("it is no export of Steward: line 1: {error}");
            Error::invalid("not_imported", text)
        })?;
        if (header.steward_export, header.schema) != (EXPORT, FORMAT) {
            let text = format!(
                "it is of form {}, its data of format {}, and this release reads {EXPORT} and {FORMAT}; import it with \
                 the release that wrote it, and open that file with this one",
                header.steward_export, header.schema
            );
            return Err(Error::invalid("not_imported", text));
        }
        Ok(header)
    }

    /// The same refusal, with the number of the line. What the operating system refuses is no line's fault.
    fn told(&self, error: Error) -> Error {
        match error.status() {
            503 => error,
            _ => Error::invalid("not_imported", format!("line {}: {error}", self.number)),
        }
    }
}

fn fill<R: BufRead>(
    database: &Database,
    reader: &mut Reader<R>,
    header: &Header,
    checks: &Checks,
    mut draw: Draw,
    progress: &Progress,
) -> Result<u64> {
    let transaction = begin(database)?;
    let mut tx = WriteTx::new(&transaction);
    tx.begin_file()?;
    let anew = (!header.secrets).then(|| Anew { secret: SigningSecret::new(&mut draw), draw });
    if let Some(anew) = &anew {
        tx.put_secret(&anew.secret)?;
    }
    let mut filling = Filling {
        kinds: Kinds::of(checks),
        tx,
        anew,
        last: None,
        counts: BTreeMap::new(),
        again: Vec::new(),
    };
    let of = header.counts.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let mut steps = progress.begin("importing", of);
    while reader.next()? {
        reader.hasher.update(&reader.line);
        filling.add(&reader.line).map_err(|error| reader.told(error))?;
        steps.done();
    }
    let lines = filling.end(header, &reader.hasher)?;
    transaction.commit().map_err(storage_error)?;
    Ok(lines)
}

/// A new file that is filled line by line.
pub struct Filling<'t, 'c> {
    kinds: Kinds<'c>,
    tx: WriteTx<'t>,
    /// What makes anew what was left out; none where secrets are in the export.
    anew: Option<Anew>,
    /// The table and the key of the line before.
    last: Option<(Table, Vec<u8>)>,
    counts: BTreeMap<String, u64>,
    /// The line as an export would write it.
    again: Vec<u8>,
}

impl Filling<'_, '_> {
    fn add(&mut self, text: &[u8]) -> Result<()> {
        self.again.clear();
        let line = Line::read(text)?;
        let table = self.kinds.table(&line.table);
        let table = table.ok_or_else(|| wrong("table", NO_TABLE))?;
        match (table, self.kinds.kind(table)) {
            (Table::Meta, _) => self.secret(&line)?,
            (Table::Sequences, _) => self.sequence(&line)?,
            (_, Some(kind)) => kind.read_line(&line, self)?,
            _ => return Err(wrong("table", "names what follows from the records")),
        }
        if self.again != text {
            return Err(wrong("", NOT_SO));
        }
        *self.counts.entry(line.table).or_default() += 1;
        self.tx.keep()
    }

    fn secret(&mut self, line: &Line<'_>) -> Result<()> {
        if self.anew.is_some() {
            return Err(wrong("table", "is secret, and the export has no secrets"));
        }
        let secret: SigningSecret = line.head_alone()?;
        self.follows(Table::Meta, &[])?;
        self.tx.put_secret(&secret)?;
        lines::write_head(Table::Meta, &secret, &mut self.again)
    }

    fn sequence(&mut self, line: &Line<'_>) -> Result<()> {
        let sequence: lines::Sequence = line.head_alone()?;
        let (table, last) = sequence.checked(&self.kinds)?;
        let key = table.name().to_owned().encoded();
        self.follows(Table::Sequences, &key)?;
        self.tx.put_plain(Table::Sequences, &key, &last.encoded())?;
        lines::write_head(Table::Sequences, &sequence, &mut self.again)
    }

    pub(super) fn record<R: Record>(
        &mut self,
        secrecy: &Secrecy<R>,
        line: &Line<'_>,
    ) -> Result<()> {
        let Told { record, payload } = line.record(secrecy, self.anew.as_mut())?;
        lines::write(secrecy, self.anew.is_none(), &payload, &mut self.again)?;
        let key = record.key().encoded();
        self.follows(R::TABLE, &key)?;
        self.tx.replace(key, None, None, &record, payload)
    }

    /// Whether a value stands behind the one before, so that none stands there twice.
    fn follows(&mut self, table: Table, key: &[u8]) -> Result<()> {
        let place = (table, key.to_vec());
        if self.last.as_ref().is_some_and(|last| *last >= place) {
            return Err(wrong("", "does not stand in its place behind the line before"));
        }
        self.last = Some(place);
        Ok(())
    }

    /// Holds the whole against what the first line tells of it; answers how many lines there were.
    fn end(self, header: &Header, hasher: &blake3::Hasher) -> Result<u64> {
        if self.counts != header.counts {
            let text = "line 1: counts is not what there is: lines are missing, or too many";
            return Err(Error::invalid("not_imported", text));
        }
        if header.secrets && !self.counts.contains_key(Table::Meta.plain_name()) {
            let text = "line 1: secrets is true, and there is no signing secret";
            return Err(Error::invalid("not_imported", text));
        }
        if hasher.finalize().to_hex().as_str() != header.blake3 {
            let text = "line 1: blake3 is the hash of other lines: something was changed";
            return Err(Error::invalid("not_imported", text));
        }
        self.tx.finish()?;
        Ok(self.counts.values().sum())
    }
}
