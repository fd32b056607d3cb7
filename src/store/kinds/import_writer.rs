//! Adding the records of an export to a new file.

use crate::error::Result;
use crate::store::record::Record;
use crate::store::values::key::Key;
use crate::store::values::schema::Table;
use crate::store::write::WriteTx;

use super::json_lines::{
    self, ExportLine, IncludedSecrets, ParsedRecord, Redaction, Regenerator, invalid_field,
};

/// A new file during an import.
pub struct ImportWriter<'t> {
    pub(in crate::store) tx: WriteTx<'t>,
    /// Which secrets the export contains.
    secrets: IncludedSecrets,
    /// The source of the others; `None` if the export contains all secrets.
    pub(in crate::store) regenerator: Option<Regenerator>,
    /// The current line as an export would write it.
    pub(in crate::store) rendered: Vec<u8>,
    /// The table and the key of the previous line.
    previous: Option<(Table, Vec<u8>)>,
}

impl<'t> ImportWriter<'t> {
    pub(in crate::store) fn new(
        tx: WriteTx<'t>,
        secrets: IncludedSecrets,
        regenerator: Option<Regenerator>,
    ) -> Self {
        Self { tx, secrets, regenerator, rendered: Vec::new(), previous: None }
    }

    /// Adds the record in a line.
    pub(in crate::store) fn record<R: Record>(
        &mut self,
        redaction: &Redaction<R>,
        line: &ExportLine,
    ) -> Result<()> {
        let is_hidden = self.secrets.hide(redaction);
        let regenerator = self.regenerator.as_mut().filter(|_| is_hidden);
        let ParsedRecord { record, payload } = line.record(redaction, regenerator)?;
        json_lines::write_record(redaction, self.secrets, &payload, &mut self.rendered)?;
        let key = record.key().encoded();
        self.require_order(R::TABLE, &key)?;
        self.tx.replace(key, None, None, &record, payload)
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
