//! The lines of an export: one line of JSON for each value.
//!
//! ```text
//! {"table":"domains","version":2,"meta":[...],"fields":{...}}
//! ```
//!
//! `meta` is the record's metadata, and `fields` its fields. Sequences and the signing secret have only `meta`. Indexes
//! and counts have no lines, because they are derived from the records.
//!
//! An import accepts any order of members and any spacing, so a line may pass through other programs. The hash of an
//! export is that of the [canonical](super::canonical) lines.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::base::json::deserialize_storable;
use crate::base::secret::{SeededRng, SigningSecret};
use crate::store::record::Record;
use crate::store::record::erased::ErasedRecord;
use crate::store::values::payload::damaged;
use crate::store::values::schema::Table;
use crate::store::write::WriteTx;

use super::canonical::{serialize_canonical, with_line_end};
use super::json_parts::{invalid_field, parse_line, read_part};

/// What an export without secrets omits from a type of record.
pub enum Redaction<R: Record> {
    /// Nothing: the records contain no secrets.
    Open,
    /// The records themselves.
    Whole,
    /// A member of the fields, which becomes null. An import replaces it with the result of `regenerate`, if that
    /// returns one.
    Member {
        /// The name of the member.
        name: &'static str,
        /// Returns a new value.
        regenerate: fn(&mut SeededRng) -> Option<Value>,
    },
    /// A part of the metadata, which `hide` clears. An import calls `regenerate` to derive it from the secret of the
    /// new file.
    Meta {
        /// Clears the secret part.
        hide: fn(&mut R::Meta),
        /// Derives the secret part again.
        regenerate: fn(&mut R, &SigningSecret) -> Result<()>,
    },
}

/// A [`Redaction`] without the type of record.
#[derive(Clone, Copy)]
pub enum ErasedRedaction {
    Open,
    Whole,
    Member { name: &'static str, regenerate: fn(&mut SeededRng) -> Option<Value> },
    Meta,
}

/// Which secrets an export contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncludedSecrets {
    /// No secrets.
    Nothing,
    /// Secrets that are valid in every installation: not the signing secret, and nothing that derives from it.
    Portable,
    /// All secrets.
    Everything,
}

impl IncludedSecrets {
    /// Returns whether the export hides what `redaction` declares.
    pub(super) const fn hide(self, redaction: ErasedRedaction) -> bool {
        match redaction {
            ErasedRedaction::Open => false,
            ErasedRedaction::Whole | ErasedRedaction::Member { .. } => {
                matches!(self, Self::Nothing)
            }
            ErasedRedaction::Meta => !matches!(self, Self::Everything),
        }
    }
}

/// The source of new secrets for those that an export hides.
pub struct Regenerator {
    pub secret: SigningSecret,
    pub draw: SeededRng,
}

/// A line, split into its members. It serializes in canonical form, so its members are in the order of their names.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportLine {
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_canonical",
        deserialize_with = "deserialize_storable"
    )]
    fields: Option<Value>,
    #[serde(serialize_with = "serialize_canonical")]
    pub(super) meta: Value,
    /// The table of the value.
    pub(in crate::store) table: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
}

/// The largest version and the largest sequence number that a line may have, so that neither can overflow
/// later.
const MAX_SEQUENCE: u64 = u64::MAX / 2;

impl ExportLine {
    /// Parses a line.
    pub(in crate::store) fn read(text: &[u8]) -> Result<Self> {
        parse_line(text)
    }

    /// Returns the [canonical form](super::canonical) of the line.
    pub(in crate::store) fn canonical(&self) -> Result<Vec<u8>> {
        with_line_end(self)
    }

    /// Parses the metadata of a line that has no other members.
    pub(in crate::store) fn meta_alone<T: DeserializeOwned>(&self) -> Result<T> {
        if self.version.is_some() || self.fields.is_some() {
            return Err(invalid_field("", NOT_CANONICAL));
        }
        read_part(&self.meta, "meta")
    }

    /// Returns the version of the record.
    pub(super) fn checked_version(&self) -> Result<u64> {
        let version = self.version.filter(|version| (1..=MAX_SEQUENCE).contains(version));
        version.ok_or_else(|| invalid_field("version", "is not a valid version"))
    }

    /// Returns the fields with a new value of a member.
    pub(super) fn fields_with(&self, new: Option<(&str, Value)>) -> Cow<'_, Value> {
        let mut fields = Cow::Borrowed(self.fields.as_ref().unwrap_or(&Value::Null));
        if let Some((name, value)) = new {
            replace_member(fields.to_mut(), name, value);
        }
        fields
    }
}

/// Appends the fields, with null instead of a hidden member, and the end of the line.
pub(super) fn end_with_fields(
    table: Table,
    fields: &[u8],
    hidden: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let fields = std::str::from_utf8(fields).map_err(|error| damaged(table, &error))?;
    let mut fields = Cow::Borrowed(fields);
    if let Some(name) = hidden {
        let mut value = serde_json::from_str(&fields).map_err(Error::internal)?;
        replace_member(&mut value, name, Value::Null);
        fields = Cow::Owned(value.to_string());
    }
    if fields != "null" {
        out.extend_from_slice(b",\"fields\":");
        out.extend_from_slice(fields.as_bytes());
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Appends the line of a value that is not a record.
pub fn write_meta(table: Table, meta: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    begin(table, None, out);
    write_meta_json(meta, out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Appends the beginning of a line.
pub(super) fn begin(table: Table, version: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"table\":\"");
    out.extend_from_slice(table.plain_name().as_bytes());
    out.push(b'"');
    if let Some(version) = version {
        out.extend_from_slice(format!(",\"version\":{version}").as_bytes());
    }
}

/// Appends the metadata.
pub(super) fn write_meta_json(meta: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(b",\"meta\":");
    serde_json::to_writer(out, meta).map_err(Error::internal)
}

/// The last number of a sequence.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// The table whose ids the sequence assigns.
    of: String,
    last: u64,
}

impl Sequence {
    pub fn of(table: Table, last: u64) -> Self {
        Self { of: table.plain_name().to_owned(), last }
    }

    /// Returns the table and the last number, after validation.
    pub fn checked(&self) -> Result<(Table, u64)> {
        let table = Table::named(&self.of).ok_or_else(|| invalid_field("meta.of", NO_TABLE))?;
        let last = Some(self.last).filter(|last| (1..=MAX_SEQUENCE).contains(last));
        let invalid = || invalid_field("meta.last", "is not a valid sequence number");
        Ok((table, last.ok_or_else(invalid)?))
    }
}

pub const NO_TABLE: &str = "is not the name of a table";
pub const NOT_CANONICAL: &str = "is not in the form that an export writes";

/// Replaces the value of a member, if `fields` has the member.
fn replace_member(fields: &mut Value, name: &str, value: Value) {
    if let Some(member) = fields.get_mut(name) {
        *member = value;
    }
}

/// A new file during an import.
pub struct ImportWriter<'t> {
    pub(in crate::store) tx: WriteTx<'t>,
    /// Which secrets the export contains.
    pub(in crate::store) secrets: IncludedSecrets,
    /// The source of the others; `None` if the export contains all secrets.
    pub(in crate::store) regenerator: Option<Regenerator>,
    /// The current line as an export would write it.
    pub(in crate::store) rendered: Vec<u8>,
    /// The table and the key of the previous line.
    pub(in crate::store) previous: Option<(Table, Vec<u8>)>,
}

impl ImportWriter<'_> {
    /// Adds a record, which has this payload.
    pub(super) fn add(
        &mut self,
        table: Table,
        record: &dyn ErasedRecord,
        payload: Vec<u8>,
    ) -> Result<()> {
        let key = record.encoded_key();
        self.require_order(table, &key)?;
        self.tx.replace(table, key, None, record, payload)
    }

    /// Fails unless the keys are in ascending order, so that none occurs twice.
    pub(in crate::store) fn require_order(&mut self, table: Table, key: &[u8]) -> Result<()> {
        let place = (table, key.to_vec());
        if self.previous.as_ref().is_some_and(|last| *last >= place) {
            return Err(invalid_field("", "is not in order after the previous line"));
        }
        self.previous = Some(place);
        Ok(())
    }
}
