//! Stored values: a payload after a checksum over table, key and payload.

use std::fmt::{self, Display};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::error::{Error, Result};

use super::schema::Table;

/// The size in bytes of the checksum of a sealed value.
pub(in crate::store) const CHECKSUM: usize = 8;

/// Returns `payload` after the checksum of table, key and payload.
pub(in crate::store) fn seal(table: Table, key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(CHECKSUM + payload.len());
    out.extend_from_slice(&checksum(table, key, payload));
    out.extend_from_slice(payload);
    out
}

/// Verifies the checksum of a sealed value and returns its payload.
pub(in crate::store) fn unseal<'a>(table: Table, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8]> {
    match sealed.split_first_chunk::<CHECKSUM>() {
        Some((sum, payload)) if *sum == checksum(table, key, payload) => Ok(payload),
        _ => Err(damaged(table, &format_args!("checksum mismatch under the key {}", HexKey(key)))),
    }
}

/// Returns the payload of a sealed value that never left this process, without verifying it.
pub(in crate::store) fn payload_of(sealed: &[u8]) -> &[u8] {
    sealed.get(CHECKSUM..).unwrap_or_default()
}

/// Includes the table and the key, so that a value stored in the wrong place fails too.
fn checksum(table: Table, key: &[u8], payload: &[u8]) -> [u8; CHECKSUM] {
    let place = xxh3_64_with_seed(key, xxh3_64(table.name().as_bytes()));
    xxh3_64_with_seed(payload, place).to_le_bytes()
}

/// Formats a key in messages to the operator: two hexadecimal digits for each byte.
pub(in crate::store) struct HexKey<'k>(pub(in crate::store) &'k [u8]);

impl Display for HexKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 64;
        self.0.iter().take(SHOWN).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if self.0.len() > SHOWN { f.write_str("...") } else { Ok(()) }
    }
}

/// Returns the error of a read that finds the file damaged.
pub(in crate::store) fn damaged(table: Table, what: &dyn Display) -> Error {
    Error::internal(format_args!("the data file is damaged: {}: {what}", table.name()))
}
