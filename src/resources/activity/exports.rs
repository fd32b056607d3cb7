//! Activity entries for batch exports. A change of secrets is recorded without its values.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::resources::batch_exports::{BatchExport, Secrets};
use crate::resources::projects;
use crate::store::{Row, Tx};

use super::log_target::{Location, Loggable};

impl Loggable for BatchExport {
    const SCOPE: &'static str = "BatchExport";

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }
}

/// The only field is the version of the secrets record, and it is hidden: an entry never contains a secret.
impl Loggable for Secrets {
    const SCOPE: &'static str = "BatchExport";
    const HIDDEN: &'static [&'static str] = &["destination__secrets"];
    const IS_PART: bool = true;

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
