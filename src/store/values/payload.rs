//! The payload of a record.
//!
//! ```text
//! version, length of the metadata (postcard) | metadata (postcard) | fields (JSON)
//! ```
//!
//! Postcard does not mark the end of a value, so only the length says where the fields begin if the type of the metadata is
//! not known.

use serde::Serialize;

use crate::error::{Error, Result};

use super::checksum::damaged;
use super::schema::Table;

/// A payload, split into its parts.
pub(in crate::store) struct Payload<'p> {
    pub(in crate::store) version: u64,
    pub(in crate::store) meta: &'p [u8],
    pub(in crate::store) fields: &'p [u8],
}

impl<'p> Payload<'p> {
    /// Splits the payload of a record of `table`.
    pub(in crate::store) fn read(table: Table, bytes: &'p [u8]) -> Result<Self> {
        let ((version, length), rest) = postcard::take_from_bytes::<(u64, usize)>(bytes)
            .map_err(|error| damaged(table, &error))?;
        let (meta, fields) =
            rest.split_at_checked(length).ok_or_else(|| damaged(table, &"a record is cut off"))?;
        Ok(Self { version, meta, fields })
    }
}

/// Whether two payloads of records of `table` differ at most in their versions.
pub(in crate::store) fn has_same_content(table: Table, one: &[u8], other: &[u8]) -> Result<bool> {
    let (one, other) = (Payload::read(table, one)?, Payload::read(table, other)?);
    Ok((one.meta, one.fields) == (other.meta, other.fields))
}

/// The room for the fields of most records, in bytes.
const USUAL_FIELDS: usize = 512;

/// Returns a payload without its fields, which the caller appends.
pub(in crate::store) fn begin_payload(version: u64, meta: &[u8]) -> Result<Vec<u8>> {
    let out = Vec::with_capacity(USUAL_FIELDS + meta.len());
    let mut out = postcard::to_extend(&(version, meta.len()), out).map_err(Error::internal)?;
    out.extend_from_slice(meta);
    Ok(out)
}

/// The room for the metadata of most records, in bytes.
const USUAL_META: usize = 128;

/// Returns the bytes of a record's metadata.
pub(in crate::store) fn meta_bytes(meta: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_extend(meta, Vec::with_capacity(USUAL_META)).map_err(Error::internal)
}
