//! The bytes of a stored value: a payload after a checksum over table, key and payload. The payload of a record is:
//!
//! ```text
//! version, length of the metadata (postcard) | metadata (postcard) | fields (JSON)
//! ```
//!
//! Postcard does not mark the end of a value, so only the length says where the fields begin if the type of the metadata is
//! not known.

use std::fmt::{self, Display};

use serde::Serialize;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::base::error::{Error, Result};

use super::schema::Table;

/// The size in bytes of the checksum of a sealed value.
pub const CHECKSUM: usize = 8;

/// Returns `payload` after the checksum of table, key and payload.
pub fn seal(table: Table, key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(CHECKSUM + payload.len());
    out.extend_from_slice(&checksum(table, key, payload));
    out.extend_from_slice(payload);
    out
}

/// Verifies the checksum of a sealed value and returns its payload.
pub fn unseal<'a>(table: Table, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8]> {
    match sealed.split_first_chunk::<CHECKSUM>() {
        Some((sum, payload)) if *sum == checksum(table, key, payload) => Ok(payload),
        _ => Err(damaged(table, &format_args!("checksum mismatch under the key {}", HexKey(key)))),
    }
}

/// Returns the payload of a sealed value that never left this process, without verifying it.
pub fn payload_of(sealed: &[u8]) -> &[u8] {
    sealed.get(CHECKSUM..).unwrap_or_default()
}

/// Includes the table and the key, so that a value stored in the wrong place fails too.
fn checksum(table: Table, key: &[u8], payload: &[u8]) -> [u8; CHECKSUM] {
    let place = xxh3_64_with_seed(key, xxh3_64(table.name().as_bytes()));
    xxh3_64_with_seed(payload, place).to_le_bytes()
}

/// Formats a key in messages to the operator: two hexadecimal digits for each byte.
pub struct HexKey<'k>(pub &'k [u8]);

impl Display for HexKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 64;
        self.0.iter().take(SHOWN).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if self.0.len() > SHOWN { f.write_str("...") } else { Ok(()) }
    }
}

/// Returns the error of a read that finds the file damaged.
pub fn damaged(table: Table, what: &dyn Display) -> Error {
    Error::internal(format_args!("the data file is damaged: {}: {what}", table.name()))
}

/// A payload, split into its parts.
pub struct Payload<'p> {
    pub version: u64,
    pub meta: &'p [u8],
    pub fields: &'p [u8],
}

impl<'p> Payload<'p> {
    /// Splits the payload of a record of `table`.
    pub fn read(table: Table, bytes: &'p [u8]) -> Result<Self> {
        let ((version, length), rest) = postcard::take_from_bytes::<(u64, usize)>(bytes)
            .map_err(|error| damaged(table, &error))?;
        let (meta, fields) =
            rest.split_at_checked(length).ok_or_else(|| damaged(table, &"a record is cut off"))?;
        Ok(Self { version, meta, fields })
    }
}

/// Returns the version in the payload of a record of `table`.
pub fn version_of(table: Table, bytes: &[u8]) -> Result<u64> {
    Ok(Payload::read(table, bytes)?.version)
}

/// Whether two payloads of records of `table` differ at most in their versions.
pub fn has_same_content(table: Table, one: &[u8], other: &[u8]) -> Result<bool> {
    let (one, other) = (Payload::read(table, one)?, Payload::read(table, other)?);
    Ok((one.meta, one.fields) == (other.meta, other.fields))
}

/// The room for the fields of most records, in bytes.
const USUAL_FIELDS: usize = 512;

/// Returns a payload without its fields, which the caller appends.
pub fn begin_payload(version: u64, meta: &[u8]) -> Result<Vec<u8>> {
    let out = Vec::with_capacity(USUAL_FIELDS + meta.len());
    let mut out = postcard::to_extend(&(version, meta.len()), out).map_err(Error::internal)?;
    out.extend_from_slice(meta);
    Ok(out)
}

/// The room for the metadata of most records, in bytes.
const USUAL_META: usize = 128;

/// Returns the bytes of a record's metadata.
pub fn meta_bytes(meta: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_extend(meta, Vec::with_capacity(USUAL_META)).map_err(Error::internal)
}
