//! The secret values of destinations: a record of its own beside each export.

use std::fmt;

use crate::error::Result;
use crate::input::JsonObject;
use crate::store::{Reference, WriteTx, impl_record};

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

impl_record!(Secrets {
    table: BatchExportSecrets,
    key: |secrets| -> ExportKey { secrets.of },
    parts: of: ExportKey, values: JsonObject,
    owner: |secrets, tx| {
        Ok(tx.meta::<BatchExport>(&secrets.of)?.map(|meta| meta.organization.owner()))
    },
    references: |secrets| [Reference::to::<BatchExport>(&secrets.of)],
});

/// Stores the secret values of an export, or deletes the record if there are none.
pub(super) fn put(tx: &mut WriteTx<'_>, of: ExportKey, values: JsonObject) -> Result<()> {
    if values.is_empty() {
        return tx.remove::<Secrets>(&of).map(drop);
    }
    tx.put(&Secrets { of, values })
}
