//! The lines of an export: one line of JSON for each value.
//!
//! ```text
//! {"table":"domains","version":2,"head":[...],"shown":{...}}
//! ```
//!
//! `head` is the record's metadata, and `shown` its fields. `shown` is copied unparsed, so that the order of its
//! members and the digits of its numbers do not change. Sequences and the signing secret have only a `head`. Indexes
//! and counts have no lines, because they are derived from the records.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use crate::error::{Error, Result};
use crate::secret::{SeededRng, SigningSecret};

use super::payload::{begin_payload, meta_bytes};
use super::record::{Added, Record, Row, append_json};
use super::schema::Table;
use super::sealed::damaged;

/// What an export without secrets omits from a type of record.
pub enum Redaction<R: Record> {
    /// Nothing: the records contain no secrets.
    Open,
    /// The records themselves.
    Whole,
    /// A member of `shown`, which becomes null. An import replaces it with the result of `regenerate`, if that
    /// returns one.
    Member {
        /// The name of the member.
        name: &'static str,
        /// Returns the JSON text of a new value.
        regenerate: fn(&mut SeededRng) -> Option<String>,
    },
    /// A part of the metadata, which `hide` clears. An import calls `regenerate` to derive it from the secret of the
    /// new file.
    Head {
        /// Clears the secret part.
        hide: fn(&mut R::Meta),
        /// Derives the secret part again.
        regenerate: fn(&mut R, &SigningSecret) -> Result<()>,
    },
}

/// The source of new secrets for an import without secrets.
pub(super) struct Regenerator {
    pub(super) secret: SigningSecret,
    pub(super) draw: SeededRng,
}

/// A line, split into the texts of its members.
pub struct ExportLine<'l> {
    /// The table of the value.
    pub(super) table: String,
    version: Option<&'l str>,
    head: &'l str,
    shown: Option<&'l str>,
}

/// A record that was read from a line.
pub(super) struct ParsedRecord<R> {
    pub(super) record: R,
    pub(super) payload: Vec<u8>,
}

/// The largest version and the largest sequence number that a line may have, so that neither can overflow
/// later.
const MAX_SEQUENCE: u64 = u64::MAX / 2;

impl<'l> ExportLine<'l> {
    /// Splits a line. Its members must have the order and the spacing of an export.
    pub(super) fn read(text: &'l [u8]) -> Result<Self> {
        let text = std::str::from_utf8(text).map_err(|_| invalid_field("", "is not UTF-8 text"))?;
        let mut rest = text;
        let table = member(&mut rest, "{\"table\":", "table")?;
        let version = member(&mut rest, ",\"version\":", "version")?;
        let meta = member(&mut rest, ",\"head\":", "head")?;
        let fields = member(&mut rest, ",\"shown\":", "shown")?;
        match (table, meta, rest) {
            (Some(table), Some(meta), "}\n") => {
                Ok(Self { table: parse(table, "table")?, version, head: meta, shown: fields })
            }
            _ => Err(invalid_field("", NOT_CANONICAL)),
        }
    }

    /// Returns the text of the line with these members added, which the release that wrote it did not know.
    pub(super) fn completed(&self, added: &[Added]) -> Result<Vec<u8>> {
        let table = Table::named(&self.table).ok_or_else(|| invalid_field("table", NO_TABLE))?;
        let (mut meta, mut fields) = (self.head.as_bytes().to_vec(), self.shown.map(Vec::from));
        for member in added {
            match (member, &mut fields) {
                (Added::Meta { name, default }, _) => {
                    append_json(table, &mut meta, name, *default)?;
                }
                (Added::Field { name, default }, Some(fields)) => {
                    append_json(table, fields, name, *default)?;
                }
                (Added::Field { .. }, None) => return Err(invalid_field("shown", "is missing")),
            }
        }
        let mut line = Vec::new();
        begin(table, &mut line);
        for (name, text) in [
            ("version", self.version.map(str::as_bytes)),
            ("head", Some(meta.as_slice())),
            ("shown", fields.as_deref()),
        ] {
            if let Some(text) = text {
                line.extend_from_slice(format!(",\"{name}\":").as_bytes());
                line.extend_from_slice(text);
            }
        }
        line.extend_from_slice(b"}\n");
        Ok(line)
    }

    /// Parses the `head` of a line that has no other members.
    pub(super) fn head_alone<T: DeserializeOwned>(&self) -> Result<T> {
        if self.version.is_some() || self.shown.is_some() {
            return Err(invalid_field("", NOT_CANONICAL));
        }
        parse(self.head, "head")
    }

    /// Parses the record. `regenerate` creates the omitted secrets; it is `None` if the export contains secrets.
    pub(super) fn record<R: Record>(
        &self,
        redaction: &Redaction<R>,
        mut regenerator: Option<&mut Regenerator>,
    ) -> Result<ParsedRecord<R>> {
        let version = self.version.map_or(Ok(0), |version| parse(version, "version"))?;
        if !(1..=MAX_SEQUENCE).contains(&version) {
            return Err(invalid_field("version", "is not a valid version"));
        }
        let meta = parse(self.head, "head")?;
        let mut fields = Cow::Borrowed(self.shown.unwrap_or("null"));
        if let (Redaction::Member { name, regenerate: make }, Some(regenerator)) =
            (redaction, &mut regenerator)
            && let Some(value) = make(&mut regenerator.draw)
        {
            fields = Cow::Owned(replace_member(&fields, name, &value)?);
        }
        let mut record = R::from_parts(meta, parse(&fields, "shown")?);
        match (redaction, regenerator) {
            (Redaction::Whole, Some(_)) => {
                return Err(invalid_field("table", "is secret, but the export has no secrets"));
            }
            (Redaction::Head { regenerate: make, .. }, Some(regenerator)) => {
                make(&mut record, &regenerator.secret)?;
            }
            _ => {}
        }
        let meta = meta_bytes(record.parts().0)?;
        let mut payload = begin_payload(version, R::ADDED.len(), &meta)?;
        payload.extend_from_slice(fields.as_bytes());
        Ok(ParsedRecord { record, payload })
    }
}

/// Appends the line of a record. Returns false if the record has no line.
pub(super) fn write_record<R: Record>(
    redaction: &Redaction<R>,
    with_secrets: bool,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool> {
    Row::visit(payload, |row| write_row(redaction, with_secrets, row, out))
}

fn write_row<R: Record>(
    redaction: &Redaction<R>,
    with_secrets: bool,
    mut row: Row<'_, R>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let fields = std::str::from_utf8(row.fields).map_err(|error| damaged(R::TABLE, &error))?;
    let mut fields = Cow::Borrowed(fields);
    match redaction {
        _ if with_secrets => {}
        Redaction::Open => {}
        Redaction::Whole => return Ok(false),
        Redaction::Member { name, .. } => {
            fields = Cow::Owned(replace_member(&fields, name, "null")?);
        }
        Redaction::Head { hide, .. } => hide(&mut row.meta),
    }
    begin(R::TABLE, out);
    out.extend_from_slice(format!(",\"version\":{}", row.version).as_bytes());
    write_head_json(&row.meta, out)?;
    if fields != "null" {
        out.extend_from_slice(b",\"shown\":");
        out.extend_from_slice(fields.as_bytes());
    }
    out.extend_from_slice(b"}\n");
    Ok(true)
}

/// Appends the line of a value that is not a record.
pub(super) fn write_head(table: Table, meta: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    begin(table, out);
    write_head_json(meta, out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn begin(table: Table, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"table\":\"");
    out.extend_from_slice(table.plain_name().as_bytes());
    out.push(b'"');
}

fn write_head_json(meta: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(b",\"head\":");
    serde_json::to_writer(out, meta).map_err(Error::internal)
}

/// The last number of a sequence.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sequence {
    /// The table whose ids the sequence assigns.
    of: String,
    last: u64,
}

impl Sequence {
    pub(super) fn of(table: Table, last: u64) -> Self {
        Self { of: table.plain_name().to_owned(), last }
    }

    /// Returns the table and the last number, after validation.
    pub(super) fn checked(&self) -> Result<(Table, u64)> {
        let table = Table::named(&self.of).ok_or_else(|| invalid_field("head.of", NO_TABLE))?;
        let last = Some(self.last).filter(|last| (1..=MAX_SEQUENCE).contains(last));
        Ok((
            table,
            last.ok_or_else(|| invalid_field("head.last", "is not a valid sequence number"))?,
        ))
    }
}

pub(super) const NO_TABLE: &str = "is not the name of a table";
pub(super) const NOT_CANONICAL: &str = "is not in the form that an export writes";

/// Returns the error for a field of a line; an empty `field` stands for the line itself.
pub(super) fn invalid_field(field: &str, what: &str) -> Error {
    let field = if field.is_empty() { "the line" } else { field };
    Error::invalid("not_imported", format!("{field} {what}"))
}

/// Parses JSON. An error names the field within `field` and never repeats a value.
pub(super) fn parse<'t, T: Deserialize<'t>>(text: &'t str, field: &str) -> Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut reader);
    let parsed = parsed.map_err(|error| {
        // Names in the file may contain anything, and the error is printed.
        let plain = |c: &char| c.is_ascii_alphanumeric() || "._[]".contains(*c);
        let inner: String = error.path().to_string().chars().filter(plain).take(100).collect();
        let path = match (field, inner.as_str()) {
            (field, ".") => field.to_owned(),
            ("", inner) => inner.to_owned(),
            (field, inner) => format!("{field}.{inner}"),
        };
        let text = error.inner().to_string();
        match error.inner().classify() {
            Category::Data if text.starts_with("missing field") => {
                let missing = text.split(" at line").next().unwrap_or_default();
                invalid_field(&path, &format!("is incomplete ({missing})"))
            }
            Category::Data => invalid_field(&path, "is not valid here"),
            _ => invalid_field(&path, "is not valid JSON"),
        }
    })?;
    reader.end().map_err(|_| invalid_field(field, "is followed by extra characters"))?;
    Ok(parsed)
}

/// Removes `name` and the JSON value after it from the front of `rest`, and returns the text of the value.
/// Returns `None` if `rest` does not begin with `name`.
fn member<'t>(rest: &mut &'t str, name: &str, field: &str) -> Result<Option<&'t str>> {
    let Some(text) = rest.strip_prefix(name) else { return Ok(None) };
    let (value, behind) = value(text, field)?;
    *rest = behind;
    Ok(Some(value))
}

/// Returns the text of the JSON value at the front of `text`, and the rest. `serde_json` can return raw texts
/// itself, but the feature for it gives one member name a special meaning in all parsing, requests included.
fn value<'t>(text: &'t str, field: &str) -> Result<(&'t str, &'t str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let found = matches!(values.next(), Some(Ok(_)));
    let split = text.split_at_checked(values.byte_offset()).filter(|_| found);
    split.ok_or_else(|| invalid_field(field, "is not valid JSON"))
}

/// Returns the object `text` with `new`, also JSON, as the value of its member `name`. All other bytes stay
/// the same.
pub(super) fn replace_member(text: &str, name: &str, new: &str) -> Result<String> {
    if text == "{}" {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = "{";
    while let Some(known) = member(&mut rest, before, "shown")? {
        let stands = member(&mut rest, ":", "shown")?
            .ok_or_else(|| invalid_field("shown", NOT_CANONICAL))?;
        let is_it = parse::<Cow<'_, str>>(known, "shown")? == name;
        for part in [before, known, ":", if is_it { new } else { stands }] {
            out.push_str(part);
        }
        before = ",";
    }
    if rest != "}" {
        return Err(invalid_field("shown", NOT_CANONICAL));
    }
    out.push('}');
    Ok(out)
}
