//! How the values of a data file stand in an export: one line of JSON each.
//!
//! ```text
//! {"table":"domains","version":2,"head":[...],"shown":{...}}
//! ```
//!
//! What is shown of a record goes over as it lies in the file, so that neither the order of its members nor a
//! digit of a number changes. Sequences and the signing secret have a head alone. Indexes and counts have no
//! lines: they follow from the records.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use crate::error::{Error, Result};
use crate::secret::{Draw, SigningSecret};

use super::check::{Checks, Kind};
use super::per_table::PerTable;
use super::record::{Record, Row, damaged};
use super::schema::Table;

/// What of a type of record an export leaves out that is to hold no secrets.
pub enum Secrecy<R: Record> {
    /// Nothing: it holds no secret.
    Open,
    /// The records.
    Whole,
    /// A member of what is shown, which is null then. Importing puts what `anew` gives, if anything, in its place.
    Member {
        /// Its name.
        name: &'static str,
        /// The JSON text of a new one.
        anew: fn(&mut Draw) -> Option<String>,
    },
    /// Something of the head, which `hide` takes out. Importing lets `anew` make it under the new file's secret.
    Head {
        /// Takes it out.
        hide: fn(&mut R::Head),
        /// Makes it anew.
        anew: fn(&mut R, &SigningSecret) -> Result<()>,
    },
}

/// The types of records by their tables, and the tables by what they are called outside the file.
pub(super) struct Kinds<'c> {
    kinds: PerTable<Option<&'c dyn Kind>>,
    tables: HashMap<&'static str, Table>,
}

impl<'c> Kinds<'c> {
    pub(super) fn of(checks: &'c Checks) -> Self {
        let mut kinds = PerTable::new(|| None);
        for kind in &checks.kinds {
            if let Some(table) = kind.tables().first() {
                *kinds.slot_mut(*table) = Some(kind.as_ref());
            }
        }
        Self {
            kinds,
            tables: Table::ALL.iter().map(|table| (table.plain_name(), *table)).collect(),
        }
    }

    /// The type of record whose table this is; none for indexes.
    pub(super) fn kind(&self, table: Table) -> Option<&'c dyn Kind> {
        *self.kinds.slot(table)
    }

    /// The table that is called so.
    pub(super) fn table(&self, name: &str) -> Option<Table> {
        self.tables.get(name).copied()
    }
}

/// What makes anew what an export without secrets left out.
pub(super) struct Anew {
    pub(super) secret: SigningSecret,
    pub(super) draw: Draw,
}

/// A line, taken apart: the texts of its members.
pub struct Line<'l> {
    /// The table that the value is of.
    pub(super) table: String,
    version: Option<&'l str>,
    head: &'l str,
    shown: Option<&'l str>,
}

/// A record as a line tells it.
pub(super) struct Told<R> {
    pub(super) record: R,
    pub(super) payload: Vec<u8>,
}

/// The next sequence number is never near the end of its type.
const MOST: u64 = u64::MAX / 2;

impl<'l> Line<'l> {
    /// Members stand in one order, and nothing between them: as an export writes them.
    pub(super) fn read(text: &'l [u8]) -> Result<Self> {
        let text = std::str::from_utf8(text).map_err(|_| wrong("", "is no text"))?;
        let mut rest = text;
        let table = member(&mut rest, "{\"table\":", "table")?;
        let version = member(&mut rest, ",\"version\":", "version")?;
        let head = member(&mut rest, ",\"head\":", "head")?;
        let shown = member(&mut rest, ",\"shown\":", "shown")?;
        match (table, head, rest) {
            (Some(table), Some(head), "}\n") => {
                Ok(Self { table: parse(table, "table")?, version, head, shown })
            }
            _ => Err(wrong("", NOT_SO)),
        }
    }

    /// The head of a line that has nothing else.
    pub(super) fn head_alone<T: DeserializeOwned>(&self) -> Result<T> {
        if self.version.is_some() || self.shown.is_some() {
            return Err(wrong("", NOT_SO));
        }
        parse(self.head, "head")
    }

    /// The record, with what was left out made `anew` where the export holds no secrets.
    pub(super) fn record<R: Record>(
        &self,
        secrecy: &Secrecy<R>,
        mut anew: Option<&mut Anew>,
    ) -> Result<Told<R>> {
        let version = self.version.map_or(Ok(0), |version| parse(version, "version"))?;
        if !(1..=MOST).contains(&version) {
            return Err(wrong("version", "is no version"));
        }
        let head = parse(self.head, "head")?;
        let mut shown = Cow::Borrowed(self.shown.unwrap_or("null"));
        if let (Secrecy::Member { name, anew: make }, Some(anew)) = (secrecy, &mut anew)
            && let Some(value) = make(&mut anew.draw)
        {
            shown = Cow::Owned(with_member(&shown, name, &value)?);
        }
        let mut record = R::join(head, parse(&shown, "shown")?);
        match (secrecy, anew) {
            (Secrecy::Whole, Some(_)) => {
                return Err(wrong("table", "is secret, and the export has no secrets"));
            }
            (Secrecy::Head { anew: make, .. }, Some(anew)) => make(&mut record, &anew.secret)?,
            _ => {}
        }
        let mut payload =
            postcard::to_stdvec(&(version, record.parts().0)).map_err(Error::internal)?;
        payload.extend_from_slice(shown.as_bytes());
        Ok(Told { record, payload })
    }
}

/// Appends the line of a record; answers whether there is one.
pub(super) fn write<R: Record>(
    secrecy: &Secrecy<R>,
    with_secrets: bool,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool> {
    let mut row = Row::<R>::read(payload)?;
    let shown = std::str::from_utf8(row.shown).map_err(|error| damaged(R::TABLE, &error))?;
    let mut shown = Cow::Borrowed(shown);
    match secrecy {
        _ if with_secrets => {}
        Secrecy::Open => {}
        Secrecy::Whole => return Ok(false),
        Secrecy::Member { name, .. } => shown = Cow::Owned(with_member(&shown, name, "null")?),
        Secrecy::Head { hide, .. } => hide(&mut row.head),
    }
    begin(R::TABLE, out);
    out.extend_from_slice(format!(",\"version\":{}", row.version).as_bytes());
    put_head(&row.head, out)?;
    if shown != "null" {
        out.extend_from_slice(b",\"shown\":");
        out.extend_from_slice(shown.as_bytes());
    }
    out.extend_from_slice(b"}\n");
    Ok(true)
}

/// Appends the line of a value that is no record.
pub(super) fn write_head(table: Table, head: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    begin(table, out);
    put_head(head, out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn begin(table: Table, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"table\":\"");
    out.extend_from_slice(table.plain_name().as_bytes());
    out.push(b'"');
}

fn put_head(head: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(b",\"head\":");
    serde_json::to_writer(out, head).map_err(Error::internal)
}

/// A number that a sequence has come to.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sequence {
    /// The table that it numbers.
    of: String,
    last: u64,
}

impl Sequence {
    pub(super) fn of(table: Table, last: u64) -> Self {
        Self { of: table.plain_name().to_owned(), last }
    }

    /// The table that it numbers, and the number.
    pub(super) fn checked(&self, kinds: &Kinds<'_>) -> Result<(Table, u64)> {
        let table = kinds.table(&self.of).ok_or_else(|| wrong("head.of", NO_TABLE))?;
        let last = Some(self.last).filter(|last| (1..=MOST).contains(last));
        Ok((table, last.ok_or_else(|| wrong("head.last", "is no number of a sequence"))?))
    }
}

pub(super) const NO_TABLE: &str = "names no table";
pub(super) const NOT_SO: &str = "is not as an export writes it";

/// What is wrong with a field of a line.
pub(super) fn wrong(field: &str, what: &str) -> Error {
    let field = if field.is_empty() { "the line" } else { field };
    Error::invalid("not_imported", format!("{field} {what}"))
}

/// Reads JSON; a refusal names the field within `field` and repeats no value.
pub(super) fn parse<'t, T: Deserialize<'t>>(text: &'t str, field: &str) -> Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut reader);
    let parsed = parsed.map_err(|error| {
        // A name that stands in the file may be anything, and is printed.
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
                wrong(&path, &format!("is without what belongs there ({missing})"))
            }
            Category::Data => wrong(&path, "is not what belongs there"),
            _ => wrong(&path, "is no JSON"),
        }
    })?;
    reader.end().map_err(|_| wrong(field, "is followed by something else"))?;
    Ok(parsed)
}

/// Takes what begins with `name` off the front of `rest`, and the JSON value behind it, whose text this answers;
/// none where something else stands there.
fn member<'t>(rest: &mut &'t str, name: &str, field: &str) -> Result<Option<&'t str>> {
    let Some(text) = rest.strip_prefix(name) else { return Ok(None) };
    let (value, behind) = value(text, field)?;
    *rest = behind;
    Ok(Some(value))
}

/// The text of the JSON value at the front of `text`, and what is behind it. The parser could hand such texts out by
/// itself, by a feature under which it reads a member of one name otherwise wherever it reads: in requests too.
fn value<'t>(text: &'t str, field: &str) -> Result<(&'t str, &'t str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let found = matches!(values.next(), Some(Ok(_)));
    let split = text.split_at_checked(values.byte_offset()).filter(|_| found);
    split.ok_or_else(|| wrong(field, "is no JSON"))
}

/// The object `text` with `new`, which is JSON too, in the place of its member `name`; all else as it stands.
pub(super) fn with_member(text: &str, name: &str, new: &str) -> Result<String> {
    if text == "{}" {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = "{";
    while let Some(known) = member(&mut rest, before, "shown")? {
        let stands = member(&mut rest, ":", "shown")?.ok_or_else(|| wrong("shown", NOT_SO))?;
        let is_it = parse::<Cow<'_, str>>(known, "shown")? == name;
        for part in [before, known, ":", if is_it { new } else { stands }] {
            out.push_str(part);
        }
        before = ",";
    }
    if rest != "}" {
        return Err(wrong("shown", NOT_SO));
    }
    out.push('}');
    Ok(out)
}
