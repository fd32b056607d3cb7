//! `export`: the state that one commit left, as lines of JSON. Like a backup it may come out of a store of this
//! process or, as a stream, out of a server's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::secret::SigningSecret;

use super::Store;
use super::backup::{Stream, Take, walk};
use super::check::Checks;
use super::disk::Drive;
use super::engine::RETRY_AFTER;
use super::file::{self, folder_of};
use super::key::Key;
use super::lines::{self, Kinds, Sequence};
use super::open_error::OpenError;
use super::progress::Progress;
use super::record::damaged;
use super::schema::{FORMAT, FORMAT_KEY, MARK_KEY, RENEWED_KEY, SECRET_KEY, Table};
use crate::background::{Priority, in_background};

/// The form of the lines.
pub(super) const EXPORT: u64 = 1;

/// The first line of an export. It holds no moment, so that one state has one export.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The form of the lines.
    pub(super) steward_export: u64,
    /// The form of the data file.
    pub(super) schema: u64,
    /// Whether secrets are in it.
    pub(super) secrets: bool,
    /// How many lines there are of each table.
    pub(super) counts: BTreeMap<String, u64>,
    /// The BLAKE3 hash of all lines but this.
    pub(super) blake3: String,
}

/// An export that was written to a file.
#[derive(Debug, Clone, Serialize)]
pub struct Exported {
    /// Where it is.
    pub file: PathBuf,
    /// How many lines it has, besides the first.
    pub lines: u64,
    /// How large it is.
    pub bytes: u64,
    /// Whether secrets are in it.
    pub secrets: bool,
}

/// An export that is ready to be written where it is to go. Its lines wait in a file without a name, so that
/// memory is not what limits them and nothing is left behind.
pub struct Export {
    header: Vec<u8>,
    lines: u64,
    body: File,
    secrets: bool,
}

/// How an export is made.
pub struct Exporting {
    /// What is exported, and what of it is secret.
    pub checks: Checks,
    /// Whether secrets are to be in it.
    pub secrets: bool,
    /// Where its lines may wait: a folder.
    pub folder: PathBuf,
    /// Hears how far it is.
    pub progress: Progress,
}

impl Store {
    /// Puts the state that the last commit left into lines. Whoever reads and writes goes on beside it. Nothing is
    /// read but what has lines: a damaged index is no obstacle, and an import makes it anew.
    ///
    /// # Errors
    /// When a record is damaged, or the operating system refuses.
    pub async fn export(&self, how: Exporting) -> Result<Export, OpenError> {
        let (walk_begun, snapshot) = self.begin_walk().await?;
        let put = move || {
            let _under_way = walk_begun;
            let tables = how.tables();
            how.lines(snapshot.values_of(&tables)?, |take| walk(&snapshot, &tables, take))
        };
        in_background(Priority::Upkeep, put).await?
    }
}

impl Exporting {
    /// Puts what a server [streams](Store::stream) into lines.
    ///
    /// # Errors
    /// As [`Store::export`]; and when the stream breaks off or is another release's.
    pub fn receive(&self, from: impl Read) -> Result<Export, OpenError> {
        let (mut stream, of) = Stream::open(from)?;
        self.lines(of, |take| stream.each(take))
    }

    /// The tables that have lines.
    fn tables(&self) -> Vec<Table> {
        let kinds = Kinds::of(&self.checks);
        let has_lines = |table: &&Table| {
            matches!(table, Table::Meta | Table::Sequences) || kinds.kind(**table).is_some()
        };
        Table::ALL.iter().filter(has_lines).copied().collect()
    }

    fn lines(
        &self,
        of: u64,
        source: impl FnOnce(&mut Take<'_>) -> Result<()>,
    ) -> Result<Export, OpenError> {
        let folder = &self.folder;
        let body = tempfile::tempfile_in(folder).map_err(OpenError::io("write to", folder))?;
        let mut lines = Lines::new(self, body);
        let mut steps = self.progress.begin("exporting", of);
        source(&mut |table, key, payload| {
            lines.add(table, key, payload)?;
            steps.done();
            Ok(())
        })?;
        lines.end()
    }
}

/// The lines of an export, as they come.
struct Lines<'e> {
    how: &'e Exporting,
    kinds: Kinds<'e>,
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    line: Vec<u8>,
    counts: BTreeMap<String, u64>,
    /// The signing secret, once a part of it was met.
    first: Option<[u8; 32]>,
    renewed: Option<[u8; 32]>,
}

impl<'e> Lines<'e> {
    fn new(how: &'e Exporting, body: File) -> Self {
        Self {
            how,
            kinds: Kinds::of(&how.checks),
            out: BufWriter::new(body),
            hasher: blake3::Hasher::new(),
            line: Vec::new(),
            counts: BTreeMap::new(),
            first: None,
            renewed: None,
        }
    }

    /// Adds the line of a value, where it has one.
    fn add(&mut self, table: Table, key: &[u8], payload: &[u8]) -> Result<()> {
        if table == Table::Meta {
            return self.note(key, payload);
        }
        self.add_secret()?;
        let line = &mut self.line;
        let has_line = match (table, self.kinds.kind(table)) {
            (Table::Sequences, _) => {
                let of = String::read(&mut &*key);
                let of = of.and_then(|of| Table::ALL.iter().find(|table| table.name() == of));
                let last = u64::read(&mut &*payload);
                let (of, last) =
                    of.zip(last).ok_or_else(|| damaged(table, &"no number of a table"))?;
                lines::write_head(table, &Sequence::of(*of, last), line)?;
                true
            }
            (_, Some(kind)) => kind.write_line(self.how.secrets, payload, line)?,
            // Counts and indexes follow from the records.
            _ => false,
        };
        if has_line { self.flush(table) } else { Ok(()) }
    }

    /// Notes a value of the table that is about the file itself: the mark and the form are told by the first line.
    fn note(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        let part = || {
            let part = payload.try_into();
            part.map_err(|_| damaged(Table::Meta, &"a signing secret of another length"))
        };
        match key {
            SECRET_KEY => self.first = Some(part()?),
            RENEWED_KEY => self.renewed = Some(part()?),
            MARK_KEY | FORMAT_KEY => {}
            _ => return Err(damaged(Table::Meta, &"a value of a newer release")),
        }
        Ok(())
    }

    /// Adds the line of the signing secret, whose parts stand before all else.
    fn add_secret(&mut self) -> Result<()> {
        let Some(first) = self.first.take().filter(|_| self.how.secrets) else { return Ok(()) };
        let secret = SigningSecret::of(first, self.renewed.take());
        lines::write_head(Table::Meta, &secret, &mut self.line)?;
        self.flush(Table::Meta)
    }

    fn flush(&mut self, table: Table) -> Result<()> {
        *self.counts.entry(table.plain_name().to_owned()).or_default() += 1;
        self.hasher.update(&self.line);
        let written = self.out.write_all(&self.line);
        self.line.clear();
        written.map_err(|cause| Error::unavailable(RETRY_AFTER, cause))
    }

    fn end(mut self) -> Result<Export, OpenError> {
        self.add_secret()?;
        let lines = self.counts.values().sum();
        let header = Header {
            steward_export: EXPORT,
            schema: FORMAT,
            secrets: self.how.secrets,
            counts: self.counts,
            blake3: self.hasher.finalize().to_hex().to_string(),
        };
        let mut header = serde_json::to_vec(&header).map_err(Error::internal)?;
        header.push(b'\n');
        let folder = &self.how.folder;
        let body = self.out.into_inner().map_err(io::IntoInnerError::into_error);
        let body = body.and_then(|mut body| body.rewind().map(|()| body));
        let body = body.map_err(OpenError::io("write to", folder))?;
        Ok(Export { header, lines, body, secrets: self.how.secrets })
    }
}

/// Refuses to write where something is already.
///
/// # Errors
/// When there is something at `path`.
pub fn require_absent(path: &Path) -> Result<(), OpenError> {
    file::require_absent(&Drive::files(), path)
}

impl Export {
    /// Writes it to `out`; answers how many bytes it is.
    ///
    /// # Errors
    /// When `out` takes no more.
    pub fn write_to(mut self, mut out: impl Write) -> io::Result<u64> {
        out.write_all(&self.header)?;
        let rest = io::copy(&mut self.body, &mut out)?;
        out.flush()?;
        Ok(rest + self.header.len() as u64)
    }

    /// Writes it to a new file at `to`, which only its user may read, and which appears whole or not at all.
    ///
    /// # Errors
    /// When there is a file already, or the operating system refuses.
    pub fn save(self, to: &Path) -> Result<Exported, OpenError> {
        require_absent(to)?;
        let (lines, secrets) = (self.lines, self.secrets);
        let draft = tempfile::Builder::new()
            .prefix("export-")
            .suffix(".creating")
            .tempfile_in(folder_of(to));
        let mut draft = draft.map_err(OpenError::io("create", to))?;
        let written = self.write_to(&mut draft).and_then(|bytes| {
            draft.as_file().sync_all()?;
            Ok(bytes)
        });
        let bytes = written.map_err(OpenError::io("write", to))?;
        draft.persist_noclobber(to).map_err(|refused| match refused.error.kind() {
            io::ErrorKind::AlreadyExists => OpenError::Exists(to.to_owned()),
            _ => OpenError::io("create", to)(refused.error),
        })?;
        file::sync_folder(&Drive::files(), to)?;
        Ok(Exported { file: to.to_owned(), lines, bytes, secrets })
    }
}
