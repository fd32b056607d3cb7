//! The part of an export that selects the records of one organization, and tells what its keys depend on.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Result;
use crate::secret::{Purpose, SigningSecret};
use crate::store::format::secrets::stored_secret;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::schema::Table;

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
    pub(in crate::store) fn records(self, state: &Snapshot) -> Result<OrganizationRecords<'_>> {
        let header = OrganizationHeader { id: self.id, keys: key_origin(&stored_secret(state)?)? };
        Ok(OrganizationRecords { header, state, selected: (self.select)(state, self.id)? })
    }
}

/// The records of an organization in a state.
pub(in crate::store) struct OrganizationRecords<'s> {
    pub(in crate::store) header: OrganizationHeader,
    state: &'s Snapshot,
    selected: Box<dyn Selected>,
}

impl OrganizationRecords<'_> {
    /// Returns what the export contains of a record. Sequences reveal numbers of other organizations, so it has none.
    pub(in crate::store) fn select<'p>(
        &self,
        table: Table,
        payload: &'p [u8],
    ) -> Result<Option<Cow<'p, [u8]>>> {
        if table == Table::Sequences {
            return Ok(None);
        }
        self.selected.select(self.state, table, payload)
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
pub(super) fn key_origin(secret: &SigningSecret) -> Result<String> {
    let origin = secret.subkey(Purpose::KeyOrigin)?;
    Ok(blake3::Hash::from_bytes(origin).to_hex().to_string())
}
