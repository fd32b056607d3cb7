//! Exports of one organization: which records they have, what their keys depend on, and an export that was read and checked before
//! any of it is written.

use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use redb::Database;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::error::{Error, Result};
use crate::base::secret::{Purpose, SeededRng, SigningSecret};
use crate::store::changes::file_copy::open_unnamed;
use crate::store::disk::open_error::OpenError;
use crate::store::format::secrets::stored_secret;
use crate::store::kinds::json_lines::Regenerator;
use crate::store::kinds::json_parts::invalid_field;
use crate::store::kinds::record_registry::RecordRegistry;
use crate::store::reads::report::Progress;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;
use crate::store::whole::backup::require_valid;
use crate::store::write::cell::Cell;

use super::import::{Reader, fill};

/// Decides which records belong to an organization.
pub trait Selected {
    /// Returns the payload to export if the record belongs to the organization. It lacks what concerns other
    /// organizations.
    fn select<'p>(
        &self,
        tx: &Snapshot,
        table: Table,
        payload: &'p [u8],
    ) -> Result<Option<Cow<'p, [u8]>>>;
}

/// Reads which records of a state belong to an organization. Fails if the state has no such organization.
pub type Select = fn(&Snapshot, Uuid) -> Result<Box<dyn Selected>>;

/// The organization to export alone.
#[derive(Clone, Copy)]
pub struct SelectOrganization {
    /// The id of the organization.
    pub id: Uuid,
    /// Reads which records belong to it.
    pub select: Select,
}

impl SelectOrganization {
    /// Returns the header of an export of this state, and which records it contains.
    pub(super) fn of(self, state: &Snapshot) -> Result<(OrganizationHeader, Box<dyn Selected>)> {
        let header = OrganizationHeader { id: self.id, keys: key_origin(&stored_secret(state)?)? };
        Ok((header, (self.select)(state, self.id)?))
    }
}

/// The organization of an export, in its first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrganizationHeader {
    /// The id of the organization.
    pub id: Uuid,
    /// The [origin](key_origin) of the API keys.
    pub keys: String,
}

/// Returns a text that two installations have in common exactly if each accepts the API keys of the other. It reveals
/// nothing of the signing secret.
fn key_origin(secret: &SigningSecret) -> Result<String> {
    let origin = secret.subkey(Purpose::KeyOrigin)?;
    Ok(blake3::Hash::from_bytes(origin).to_hex().to_string())
}

/// A checked export of one organization, in an unnamed file.
pub struct StagedExport {
    database: Database,
    /// The organization.
    pub organization: OrganizationHeader,
    /// The cell that the export comes from.
    pub cell: Cell,
    /// Whether the API keys in it are valid here.
    pub has_valid_keys: bool,
    /// How many lines it has, not counting the first.
    pub lines: u64,
    /// Whether it contains secrets.
    pub secrets: bool,
}

impl StagedExport {
    /// Reads the lines of an export and checks them like an import of a whole workspace: as if the organization were the
    /// only one. `secret` is the signing secret of the workspace that the organization is for.
    ///
    /// # Errors
    /// When a line differs from what an export writes or does not belong to the organization (the message has its
    /// number), the content is inconsistent, or the operating system reports an error.
    pub fn read(
        from: impl BufRead,
        folder: &Path,
        (registry, select): (&RecordRegistry, Select),
        (secret, draw): (SigningSecret, SeededRng),
        progress: &Progress,
    ) -> Result<Self, OpenError> {
        let file = tempfile::tempfile_in(folder).map_err(OpenError::io("write to", folder))?;
        let mut database = open_unnamed(file)?;
        let mut reader = Reader::new(from);
        let header = reader.header()?;
        let organization = header.organization.clone().ok_or_else(|| {
            let text =
                "it has a whole workspace; import it into a new place, without --organization";
            Error::invalid("not_imported", text)
        })?;
        let has_valid_keys = organization.keys == key_origin(&secret)?;
        let source = Regenerator { secret, draw };
        let lines = fill(&database, &mut reader, &header, registry, source, progress)?;
        require_valid(folder, &mut database, registry, progress)?;
        let cell = Cell::new(header.cell).unwrap_or_default();
        let secrets = header.secrets;
        let staged = Self { database, organization, cell, has_valid_keys, lines, secrets };
        staged.require_selected(registry, select)?;
        Ok(staged)
    }

    /// Returns the records of the export. They can be read as long as this exists.
    pub fn records(&self) -> Result<Arc<Snapshot>> {
        Ok(Arc::new(Snapshot::begin(&self.database)?))
    }

    /// Fails unless the export of this organization would contain each record as it is.
    fn require_selected(&self, registry: &RecordRegistry, select: Select) -> Result<()> {
        let state = self.records()?;
        let selected = select(&state, self.organization.id)?;
        let mut line = 1;
        for table in Table::ALL.iter().filter(|table| registry.find(**table).is_some()) {
            state.each(*table, &mut |_, payload| {
                line += 1;
                let payload = payload?;
                if selected.select(&state, *table, payload)?.as_deref() == Some(payload) {
                    return Ok(());
                }
                let refused = invalid_field("", "does not belong to the organization");
                Err(Error::invalid("not_imported", format!("line {line}: {refused}")))
            })?;
        }
        Ok(())
    }
}
