//! What batch exports declare about their records. The activity log records a change of secrets without their values.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::resources::loggable::{FieldAction, Location, Loggable};
use crate::resources::projects;
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Redaction, Row, Tx};

use super::{BatchExport, Secrets};

/// The records of batch exports.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<BatchExport>().logged().deleted_with_project().numbered(|export| export.meta.serial),
    &record::<Secrets>().redacted(Redaction::Whole).logged().deleted_with_project(),
];

impl Loggable for BatchExport {
    const SCOPE: &'static str = "BatchExport";
    const ACTIONS: &'static [FieldAction] =
        &[FieldAction::Switched { field: "paused", on: "paused", off: "unpaused" }];

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }
}

/// The only field is the version of the secrets record, and it is hidden: an entry never contains a secret.
impl Loggable for Secrets {
    const SCOPE: &'static str = BatchExport::SCOPE;
    const HIDDEN: &'static [&'static str] = &["destination__secrets"];
    const PARENT: Option<&'static str> = Some(BatchExport::SCOPE);

    fn item_id(meta: &Self::Meta) -> String {
        meta.1.to_string()
    }

    fn location(meta: &Self::Meta, tx: &impl Tx) -> Result<Location> {
        let project = projects::find_by_id(tx, meta.0)?;
        Ok((project.map(|project| project.organization), Some(meta.0)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("destination__secrets".to_owned(), row.version.into())]))
    }
}
