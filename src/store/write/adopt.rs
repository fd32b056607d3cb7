//! Adding records that another installation created, with their keys and their versions.

use crate::error::Result;
use crate::store::record::{IndexForm, Record, Tx, payload};
use crate::store::values::key::Key;
use crate::store::values::raw::Raw;
use crate::store::values::schema::Table;

use super::WriteTx;

/// Returns the table in which another record has the key of `record`, or one of its unique keys.
pub fn find_taken<R: Record>(tx: &impl Tx, record: &R) -> Result<Option<Table>> {
    if exists(tx, R::TABLE, &record.key().encoded())? {
        return Ok(Some(R::TABLE));
    }
    for index in R::INDEXES.iter().filter(|index| index.form() == IndexForm::Unique) {
        if let Some(entry) = index.entry(record)
            && exists(tx, index.table(), &entry)?
        {
            return Ok(Some(index.table()));
        }
    }
    Ok(None)
}

/// Returns the stored form of a record at a version.
///
/// # Errors
/// 500 when the record cannot be serialized.
pub fn payload_of<R: Record>(version: u64, record: &R) -> Result<Vec<u8>> {
    payload(version, record)
}

fn exists(tx: &impl Raw, table: Table, key: &[u8]) -> Result<bool> {
    let mut is_found = false;
    tx.raw_get(table, key, &mut |_| {
        is_found = true;
        Ok(())
    })?;
    Ok(is_found)
}

impl WriteTx<'_> {
    /// Adds a record at the version that it has in another installation. If this cell created its number, the sequence
    /// assigns the number to no other record.
    ///
    /// # Errors
    /// 500 when a key of the record is [taken](find_taken).
    pub fn adopt<R: Record>(
        &mut self,
        record: &R,
        version: u64,
        number: Option<u64>,
    ) -> Result<()> {
        let projected = record.projected();
        let record = projected.as_ref().unwrap_or(record);
        if R::REUSES_KEYS {
            self.reserve_number(R::TABLE, version)?;
        }
        if let Some(number) = number {
            self.reserve_number(R::TABLE, number)?;
        }
        let payload = payload(version, record)?;
        self.replace(record.key().encoded(), None, None, record, payload)
    }
}
