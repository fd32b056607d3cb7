//! `import`: creates a data file from the lines of an export. Everything is checked before the file appears.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use redb::Database;
use serde::Serialize;

use crate::base::error::{Error, Result};
use crate::base::secret::{SeededRng, SigningSecret};
use crate::store::disk::engine::{DEFAULT_CACHE, begin, storage_error};
use crate::store::disk::file::{self, FileLock, Owner};
use crate::store::disk::file_system::{FileSystem, FsHandle, OsFileSystem};
use crate::store::disk::open_error::OpenError;
use crate::store::disk::place::{Destination, ShownPath};
use crate::store::kinds::json_lines::{
    self, ExportLine, ImportWriter, IncludedSecrets, NO_TABLE, NOT_CANONICAL, Regenerator,
};
use crate::store::kinds::json_parts::{invalid_field, parse_line};
use crate::store::kinds::record_registry::RecordRegistry;
use crate::store::reads::report::Progress;
use crate::store::values::key::Key;
use crate::store::values::schema::{FORMAT, Table};
use crate::store::whole::backup::require_valid;
use crate::store::write::WriteTx;
use crate::store::write::cell::Cell;

use super::{EXPORT_FORMAT, Header, included_secrets};

/// The maximum length of a line: longer than any record, short enough for memory.
const MAX_LINE_LENGTH: u64 = 64 * 1024 * 1024;

const NO_RECORDS: &str = "names a table that exports do not contain";

/// A completed import.
#[derive(Debug, Clone, Serialize)]
pub struct Imported {
    /// Where the data is.
    #[serde(flatten)]
    pub to: Destination,
    /// How many lines were imported, not counting the first.
    pub lines: u64,
    /// Whether the export contained secrets. If not, the file has new secrets and no API keys.
    pub secrets: bool,
}

/// Creates a data file at `data` from the lines of an export. The file is checked like a backup, and appears
/// complete or not at all. Creates new secrets if the export contains none.
///
/// # Errors
/// When a file already exists, a line differs from what an export writes (the message has its number), the
/// content is inconsistent, or the operating system reports an error.
pub fn import(
    data: &Path,
    from: impl BufRead,
    registry: &RecordRegistry,
    rng: SeededRng,
    progress: &Progress,
) -> Result<Imported, OpenError> {
    import_on(OsFileSystem::shared(), data, from, registry, rng, progress)
}

/// Creates a data file as [`import`] does, on another disk.
pub fn import_on(
    file_system: Arc<dyn FileSystem>,
    data: &Path,
    from: impl BufRead,
    registry: &RecordRegistry,
    mut rng: SeededRng,
    progress: &Progress,
) -> Result<Imported, OpenError> {
    let fs = FsHandle::new(file_system);
    file::require_absent(&fs, data)?;
    let lock = FileLock::acquire_on(&fs, data)?;
    let mut reader = Reader::new(from);
    let created = file::create(&fs, data, Owner::OfFolder, DEFAULT_CACHE, |database| {
        let header = reader.header()?;
        if header.organization.is_some() {
            let text = "it has one organization only; import it into a workspace with `steward import --organization`";
            return Err(Error::invalid("not_imported", text).into());
        }
        let source = Regenerator { secret: SigningSecret::new(&mut rng), draw: rng };
        let lines = fill(database, &mut reader, &header, registry, source, progress)?;
        require_valid(data, database, registry, progress)?;
        let to = Destination::File(ShownPath(data.to_owned()));
        Ok(Imported { to, lines, secrets: header.secrets })
    });
    lock.release();
    created
}

/// Reads an export line by line.
pub struct Reader<R> {
    from: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Reader<R> {
    pub const fn new(from: R) -> Self {
        Self { from, line: Vec::new(), number: 0 }
    }

    /// Reads the next line. Returns false at the end.
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.number += 1;
        let read = self.from.by_ref().take(MAX_LINE_LENGTH).read_until(b'\n', &mut self.line);
        let read = read.map_err(|cause| {
            Error::invalid("not_imported", format!("line {}: {cause}", self.number))
        })?;
        if read > 0 && !self.line.ends_with(b"\n") {
            let what = if read as u64 == MAX_LINE_LENGTH { "is too long" } else { "is cut off" };
            return Err(self.with_line_number(invalid_field("", what)));
        }
        Ok(read > 0)
    }

    pub fn header(&mut self) -> Result<Header> {
        let header = if self.next()? {
            parse_line(&self.line)
        } else {
            Err(invalid_field("", "is missing"))
        };
        let header: Header = header.map_err(|error| {
            let text = format!("it is not a Steward export: line 1: {error}");
            Error::invalid("not_imported", text)
        })?;
        if (header.steward_export, header.schema) != (EXPORT_FORMAT, FORMAT) {
            let text = format!(
                "it has line format {}, its data has format {}, and this release reads {EXPORT_FORMAT} and {FORMAT}; import it \
                 with the release that wrote it, then open that file with this release",
                header.steward_export, header.schema
            );
            return Err(Error::invalid("not_imported", text));
        }
        Ok(header)
    }

    /// Adds the line number to an error. A 503 stays as it is: the operating system failed, not the line.
    fn with_line_number(&self, error: Error) -> Error {
        match error.status() {
            503 => error,
            _ => Error::invalid("not_imported", format!("line {}: {error}", self.number)),
        }
    }
}

/// Fills an empty file with the lines of an export. `source` has the secrets that the export hides.
pub fn fill<R: BufRead>(
    database: &Database,
    reader: &mut Reader<R>,
    header: &Header,
    registry: &RecordRegistry,
    source: Regenerator,
    progress: &Progress,
) -> Result<u64> {
    let no_cell = || reader.with_line_number(invalid_field("cell", "is not the number of a cell"));
    let cell = Cell::new(header.cell).ok_or_else(no_cell)?;
    let secrets = included_secrets(header.secrets, header.organization.is_some());
    let transaction = begin(database)?;
    let mut tx = WriteTx::new(&transaction);
    tx.begin_file()?;
    tx.set_cell(cell);
    let regenerator = (secrets != IncludedSecrets::Everything).then_some(source);
    if let Some(regenerator) = &regenerator {
        tx.put_secret(&regenerator.secret);
    }
    let rendered = Vec::new();
    let mut import = Import {
        registry,
        header,
        counts: BTreeMap::new(),
        hasher: blake3::Hasher::new(),
        writer: ImportWriter { tx, secrets, regenerator, rendered, previous: None },
    };
    let of = header.counts.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let mut steps = progress.begin("importing", of);
    while reader.next()? {
        import.add(&reader.line).map_err(|error| reader.with_line_number(error))?;
        steps.advance();
    }
    let lines = import.end()?;
    transaction.commit().map_err(storage_error)?;
    Ok(lines)
}

/// An import under way.
struct Import<'t, 'c> {
    registry: &'c RecordRegistry,
    /// The first line.
    header: &'c Header,
    counts: BTreeMap<String, u64>,
    /// Hashes the canonical lines.
    hasher: blake3::Hasher,
    writer: ImportWriter<'t>,
}

impl Import<'_, '_> {
    fn add(&mut self, text: &[u8]) -> Result<()> {
        let line = ExportLine::read(text)?;
        self.hasher.update(&line.canonical()?);
        let table = Table::named(&line.table);
        let table = table.ok_or_else(|| invalid_field("table", NO_TABLE))?;
        self.add_line(table, &line)?;
        self.require_content(text, line)?;
        *self.counts.entry(table.plain_name().to_owned()).or_default() += 1;
        self.writer.tx.savepoint()
    }

    fn add_line(&mut self, table: Table, line: &ExportLine) -> Result<()> {
        self.writer.rendered.clear();
        match (table, self.registry.find(table)) {
            (Table::Meta | Table::Sequences, _) if self.header.organization.is_some() => {
                return Err(invalid_field("table", "belongs to no organization"));
            }
            (Table::Meta, _) => self.secret(line)?,
            (Table::Sequences, _) => self.sequence(line)?,
            (_, Some(record_type)) if !table.is_transient() => {
                record_type.read_line(line, &mut self.writer)?;
            }
            _ => return Err(invalid_field("table", NO_RECORDS)),
        }
        Ok(())
    }

    /// Fails unless an export would write the content of the line. Equal bytes need no second parsing.
    fn require_content(&self, text: &[u8], line: ExportLine) -> Result<()> {
        if self.writer.rendered == text {
            return Ok(());
        }
        let content = line.canonical()?;
        drop(line);
        if ExportLine::read(&self.writer.rendered)?.canonical()? != content {
            return Err(invalid_field("", NOT_CANONICAL));
        }
        Ok(())
    }

    fn secret(&mut self, line: &ExportLine) -> Result<()> {
        if self.writer.regenerator.is_some() {
            return Err(invalid_field("table", "is secret, but the export has no secrets"));
        }
        let secret: SigningSecret = line.meta_alone()?;
        self.writer.require_order(Table::Meta, &[])?;
        self.writer.tx.put_secret(&secret);
        json_lines::write_meta(Table::Meta, &secret, &mut self.writer.rendered)
    }

    fn sequence(&mut self, line: &ExportLine) -> Result<()> {
        let sequence: json_lines::Sequence = line.meta_alone()?;
        let (table, last) = sequence.checked()?;
        let key = table.name().to_owned().encoded();
        self.writer.require_order(Table::Sequences, &key)?;
        self.writer.tx.put_raw(Table::Sequences, &key, &last.encoded());
        json_lines::write_meta(Table::Sequences, &sequence, &mut self.writer.rendered)
    }

    /// Compares the lines with the header and completes the file. Returns the number of lines.
    fn end(self) -> Result<u64> {
        let header = self.header;
        if self.counts != header.counts {
            let text = "line 1: counts does not match the lines: some are missing or extra";
            return Err(Error::invalid("not_imported", text));
        }
        let has_all = header.secrets && header.organization.is_none();
        if has_all && !self.counts.contains_key(Table::Meta.plain_name()) {
            let text = "line 1: secrets is true, but there is no signing secret";
            return Err(Error::invalid("not_imported", text));
        }
        if self.hasher.finalize().to_hex().as_str() != header.blake3 {
            let text = "line 1: blake3 does not match the lines: the export was changed";
            return Err(Error::invalid("not_imported", text));
        }
        self.writer.tx.finish()?;
        Ok(self.counts.values().sum())
    }
}
