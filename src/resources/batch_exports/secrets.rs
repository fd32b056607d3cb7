//! The secret values of destinations: a record of its own beside each export.

use std::fmt;

use crate::error::Result;
use crate::input::JsonObject;
use crate::store::{Owner, Record, Reference, Table, Tx, WriteTx};

use super::{BatchExport, ExportKey};

/// The secret values of an export's destination, which no response contains. Stored only if there are any.
pub struct Secrets {
    of: ExportKey,
    pub(super) values: JsonObject,
}

/// Hides the values.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("of", &self.of).finish_non_exhaustive()
    }
}

impl Record for Secrets {
    const TABLE: Table = Table::BatchExportSecrets;
    type Key = ExportKey;
    type Meta = ExportKey;
    type Fields = JsonObject;

    fn key(&self) -> ExportKey {
        self.of
    }

    fn parts(&self) -> (&ExportKey, &JsonObject) {
        (&self.of, &self.values)
    }

    fn from_parts(of: ExportKey, values: JsonObject) -> Self {
        Self { of, values }
    }

    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>> {
        Ok(tx.meta::<BatchExport>(&self.of)?.map(|meta| meta.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<BatchExport>(&self.of)]
    }
}

/// Stores the secret values of an export, or deletes the record if there are none.
pub(super) fn put(tx: &mut WriteTx<'_>, of: ExportKey, values: JsonObject) -> Result<()> {
    if values.is_empty() {
        return tx.remove::<Secrets>(&of).map(drop);
    }
    tx.put(&Secrets { of, values })
}
