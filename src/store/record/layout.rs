//! Completing records that were written before a member was added to their type.

use std::borrow::Cow;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::store::values::checksum::damaged;
use crate::store::values::payload::{Payload, begin_payload};
use crate::store::values::schema::Table;

use super::Record;

/// A member that was added to a type of record when records of that type may already have been stored.
///
/// The layout of a stored record is the number of members that [`Record::ADDED`] had when the record was
/// written. A record that lacks members is completed with their defaults when it is read, and stored with
/// them when it next changes.
pub enum Added {
    /// A member of [`Record::Fields`].
    Field {
        /// The name of the member in JSON.
        name: &'static str,
        /// The value in records that were written before.
        default: &'static dyn DefaultValue,
    },
    /// A member of [`Record::Meta`].
    Meta {
        /// The name of the member. An export shows it.
        name: &'static str,
        /// The value in records that were written before.
        default: &'static dyn DefaultValue,
    },
}

/// A value that can be written as JSON and as postcard.
pub trait DefaultValue: Sync {
    #[doc(hidden)]
    fn json(&self) -> Result<Vec<u8>>;
    #[doc(hidden)]
    fn postcard(&self) -> Result<Vec<u8>>;
}

impl<T: Serialize + Sync> DefaultValue for T {
    fn json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(Error::internal)
    }

    fn postcard(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self).map_err(Error::internal)
    }
}

/// Returns the members that a record of `table` lacks if it has this layout.
///
/// # Errors
/// 500 if the layout is newer than this release.
fn missing(table: Table, added: &'static [Added], layout: usize) -> Result<&'static [Added]> {
    added.get(layout..).ok_or_else(|| {
        let (table, known) = (table.plain_name(), added.len());
        Error::internal(format_args!(
            "a newer release wrote the data file: {table} has layout {layout}, this release reads up to {known}"
        ))
    })
}

/// Returns the payload of a record of type `R` in the current layout.
pub(in crate::store) fn completed<R: Record>(payload: &[u8]) -> Result<Cow<'_, [u8]>> {
    let stored = Payload::read(R::TABLE, payload)?;
    if stored.layout == R::ADDED.len() {
        return Ok(Cow::Borrowed(payload));
    }
    complete::<R>(&stored).map(Cow::Owned)
}

/// Returns the payload of a record of another layout in the current layout.
#[cold]
pub(super) fn complete<R: Record>(stored: &Payload<'_>) -> Result<Vec<u8>> {
    let (mut meta, mut fields) = (stored.meta.to_vec(), stored.fields.to_vec());
    for member in missing(R::TABLE, R::ADDED, stored.layout)? {
        match member {
            Added::Field { name, default } => {
                append_json(R::TABLE, &mut fields, name, *default)?;
            }
            Added::Meta { default, .. } => meta.extend(default.postcard()?),
        }
    }
    let mut out = begin_payload(stored.version, R::ADDED.len(), &meta)?;
    out.append(&mut fields);
    Ok(out)
}

/// Adds a member to the end of a JSON object, or an element to the end of a JSON array.
fn append_json(
    table: Table,
    json: &mut Vec<u8>,
    name: &str,
    default: &dyn DefaultValue,
) -> Result<()> {
    let last = json.pop();
    if !matches!(json.last(), None | Some(b'{' | b'[')) {
        json.push(b',');
    }
    match last {
        Some(b'}') => {
            json.extend(name.json()?);
            json.push(b':');
        }
        Some(b']') => {}
        _ => return Err(damaged(table, &"neither a JSON object nor an array")),
    }
    json.extend(default.json()?);
    json.extend(last);
    Ok(())
}

/// Returns the size of what completion adds to the fields of a record of the first layout.
pub(super) fn added_size<R: Record>() -> Result<usize> {
    let mut size = 0;
    for member in R::ADDED {
        if let Added::Field { name, default } = member {
            size += ",:".len() + name.json()?.len() + default.json()?.len();
        }
    }
    Ok(size)
}
