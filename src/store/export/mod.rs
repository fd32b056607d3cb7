//! `export`: writes the state of the last commit as lines of JSON. The state comes from a store of this process, or from the
//! copy that a server sends.

pub(super) mod import;
pub(super) mod organization;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use redb::Database;
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::store::changes::file_copy::{fill, open_unnamed, require_length};
use crate::store::disk::engine::{begin_unsynced, unavailable};
use crate::store::disk::file::{self, folder_of};
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::disk::place::ShownPath;
use crate::store::format::secrets::stored_secret;
use crate::store::kinds::json_lines::{self, ExportLine, IncludedSecrets, Sequence};
use crate::store::kinds::record_registry::RecordRegistry;
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::key::Key;
use crate::store::values::payload::damaged;
use crate::store::values::schema::{
    CELL_KEY, FORMAT, FORMAT_KEY, MARK_KEY, RENEWED_KEY, SECRET_KEY, TABLES_KEY, Table,
};
use crate::store::whole::backup::SentCopy;
use crate::store::write::cell::stored_cell;
use crate::store::writer::Store;

use organization::{OrganizationHeader, SelectOrganization, Selected};

/// The version of the line format.
pub(super) const EXPORT_FORMAT: u64 = 1;

/// The first line of an export. It contains no timestamp, so that equal states have equal exports.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The version of the line format.
    pub(super) steward_export: u64,
    /// The format version of the data file.
    pub(super) schema: u64,
    /// Whether the export contains secrets.
    pub(super) secrets: bool,
    /// The organization, if the export contains only that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) organization: Option<OrganizationHeader>,
    /// The [cell](crate::store::write::cell::Cell); 0 is left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) cell: u64,
    /// The number of lines of each table.
    pub(super) counts: BTreeMap<String, u64>,
    /// The BLAKE3 hash of all other lines in canonical form.
    pub(super) blake3: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Returns which secrets an export contains.
const fn included_secrets(secrets: bool, is_of_organization: bool) -> IncludedSecrets {
    match (secrets, is_of_organization) {
        (false, _) => IncludedSecrets::Nothing,
        (true, true) => IncludedSecrets::Portable,
        (true, false) => IncludedSecrets::Everything,
    }
}

/// An export that was written to a file.
#[derive(Debug, Clone, Serialize)]
pub struct Exported {
    /// The path of the export.
    pub file: ShownPath,
    /// How many lines it has, not counting the first.
    pub lines: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it contains secrets.
    pub secrets: bool,
}

/// An export that is ready to be written. Its lines are in an unnamed file, so memory does not limit its size
/// and a crash leaves nothing behind.
pub struct Export {
    header: Vec<u8>,
    lines: u64,
    body: File,
    secrets: bool,
}

/// How to export.
pub struct ExportOptions {
    /// The types of records, and what is secret in them.
    pub registry: RecordRegistry,
    /// Whether to include secrets.
    pub secrets: bool,
    /// The organization to export alone; `None` for everything.
    pub organization: Option<SelectOrganization>,
    /// The folder for the temporary file.
    pub folder: PathBuf,
    /// Receives the progress.
    pub progress: Progress,
}

impl Store {
    /// Exports the state of a commit: the last one, or one that followed meanwhile. Reads and writes continue. Reads only
    /// the tables that have lines, so a damaged index does not prevent an export; an import rebuilds the indexes.
    ///
    /// # Errors
    /// When a record is damaged, or the operating system reports an error.
    #[doc(hidden)]
    pub async fn export(&self, how: ExportOptions) -> Result<Export, OpenError> {
        let walk_begun = self.begin_walk().await;
        let tables = how.tables();
        let walk = self.begin_sliced_walk(&tables).await?;
        let put = move || {
            let _under_way = walk_begun;
            let mut steps = how.progress.begin("copying", walk.of);
            let state = open_unnamed(how.unnamed_file()?)?;
            let copying = begin_unsynced(&state)?;
            let values = fill(copying, |visit| walk.each(&tables, &mut steps, visit))?;
            require_length(&state, values)?;
            how.lines(&state)
        };
        run_low_priority(Priority::Upkeep, put).await?
    }
}

impl ExportOptions {
    /// Exports the copy that a server sends.
    ///
    /// # Errors
    /// The errors of [`Store::export`]; also when the copy breaks off or comes from a different release.
    pub fn receive(&self, copy: SentCopy<impl Read>) -> Result<Export, OpenError> {
        self.progress.begin("receiving", 0);
        self.lines(&copy.open_in(self.unnamed_file()?, &self.folder)?)
    }

    /// Creates a temporary file.
    fn unnamed_file(&self) -> Result<File, OpenError> {
        tempfile::tempfile_in(&self.folder).map_err(OpenError::io("write to", &self.folder))
    }

    /// Returns the tables that have lines.
    fn tables(&self) -> Vec<Table> {
        let has_lines = |table: &Table| {
            matches!(table, Table::Meta | Table::Sequences) || self.registry.find(*table).is_some()
        };
        Table::backed_up().into_iter().filter(has_lines).collect()
    }

    /// Writes the lines of a state.
    fn lines(&self, state: &Database) -> Result<Export, OpenError> {
        let snapshot = Snapshot::begin(state)?;
        let select = self.organization.as_ref();
        let mut lines = ExportWriter {
            options: self,
            state: &snapshot,
            organization: select.map(|select| select.of(&snapshot)).transpose()?,
            cell: stored_cell(&snapshot)?.number(),
            out: BufWriter::new(self.unnamed_file()?),
            hasher: blake3::Hasher::new(),
            line: Vec::new(),
            counts: BTreeMap::new(),
        };
        let tables = self.tables();
        let mut steps = self.progress.begin("exporting", snapshot.values_of(&tables)?);
        lines.add_secret()?;
        for table in tables {
            snapshot.each(table, &mut |key, payload| {
                steps.advance();
                lines.add(table, key, payload?)
            })?;
        }
        lines.end()
    }
}

/// Writes the lines of an export.
struct ExportWriter<'e> {
    options: &'e ExportOptions,
    state: &'e Snapshot,
    /// The organization and its records, if the export contains only that.
    organization: Option<(OrganizationHeader, Box<dyn Selected>)>,
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    line: Vec<u8>,
    counts: BTreeMap<String, u64>,
    cell: u64,
}

impl ExportWriter<'_> {
    /// Adds the line of a value, if it has one.
    fn add(&mut self, table: Table, key: &[u8], payload: &[u8]) -> Result<()> {
        if table == Table::Meta {
            return require_known(key);
        }
        let payload = match &self.organization {
            None => Cow::Borrowed(payload),
            // Sequences reveal numbers of other organizations.
            Some(_) if table == Table::Sequences => return Ok(()),
            Some((_, selected)) => match selected.select(self.state, table, payload)? {
                Some(payload) => payload,
                None => return Ok(()),
            },
        };
        let secrets = included_secrets(self.options.secrets, self.organization.is_some());
        let line = &mut self.line;
        let has_line = match (table, self.options.registry.find(table)) {
            (Table::Sequences, _) => {
                let of = String::read(&mut &*key).and_then(|of| Table::with_name(&of));
                let last = u64::read(&mut payload.as_ref());
                let (of, last) = of
                    .zip(last)
                    .ok_or_else(|| damaged(table, &"not a sequence of a known table"))?;
                json_lines::write_meta(table, &Sequence::of(of, last), line)?;
                true
            }
            (_, Some(record_type)) => record_type.write_line(secrets, &payload, line)?,
            // Counts and indexes are derived from the records.
            _ => false,
        };
        if has_line { self.flush(table) } else { Ok(()) }
    }

    /// Adds the line of the signing secret, if the export contains it.
    fn add_secret(&mut self) -> Result<()> {
        if !self.options.secrets || self.organization.is_some() {
            return Ok(());
        }
        json_lines::write_meta(Table::Meta, &stored_secret(self.state)?, &mut self.line)?;
        self.flush(Table::Meta)
    }

    fn flush(&mut self, table: Table) -> Result<()> {
        *self.counts.entry(table.plain_name().to_owned()).or_default() += 1;
        self.hasher.update(&ExportLine::read(&self.line)?.canonical()?);
        let written = self.out.write_all(&self.line);
        self.line.clear();
        written.map_err(unavailable)
    }

    fn end(self) -> Result<Export, OpenError> {
        let lines = self.counts.values().sum();
        let header = Header {
            steward_export: EXPORT_FORMAT,
            schema: FORMAT,
            secrets: self.options.secrets,
            organization: self.organization.map(|(header, _)| header),
            cell: self.cell,
            counts: self.counts,
            blake3: self.hasher.finalize().to_hex().to_string(),
        };
        let mut header = serde_json::to_vec(&header).map_err(Error::internal)?;
        header.push(b'\n');
        let folder = &self.options.folder;
        let body = self.out.into_inner().map_err(io::IntoInnerError::into_error);
        let body = body.and_then(|mut body| body.rewind().map(|()| body));
        let body = body.map_err(OpenError::io("write to", folder))?;
        Ok(Export { header, lines, body, secrets: self.options.secrets })
    }
}

/// Fails unless this is a key of [`Table::Meta`]. The mark, the format and the cell are in the first line, and the signing secret
/// has a line of its own.
fn require_known(key: &[u8]) -> Result<()> {
    match key {
        SECRET_KEY | RENEWED_KEY | MARK_KEY | FORMAT_KEY | TABLES_KEY | CELL_KEY => Ok(()),
        _ => Err(damaged(Table::Meta, &"an unknown value, perhaps of a newer release")),
    }
}

/// Fails if something exists at `path`.
pub fn require_absent(path: &Path) -> Result<(), OpenError> {
    file::require_absent(&FsHandle::os(), path)
}

impl Export {
    /// Writes the export to `out` and returns its size in bytes.
    pub fn write_to(mut self, mut out: impl Write) -> io::Result<u64> {
        out.write_all(&self.header)?;
        let rest = io::copy(&mut self.body, &mut out)?;
        out.flush()?;
        Ok(rest + self.header.len() as u64)
    }

    /// Writes the export to a new file at `to` that only its owner may read. The file appears complete or not
    /// at all.
    ///
    /// # Errors
    /// When a file already exists, or the operating system reports an error.
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
        let fs = FsHandle::os();
        file::publish(&fs, draft.path(), to)?;
        // Its name may be gone already.
        let _ = draft.close();
        file::sync_folder(&fs, to)?;
        Ok(Exported { file: ShownPath(to.to_owned()), lines, bytes, secrets })
    }
}
