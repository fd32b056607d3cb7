//! What the log tells of batch exports. Of what is never shown of one it tells only that it changed.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::resources::batch_exports::{BatchExport, Secrets};
use crate::resources::projects;
use crate::store::{Row, Tx};

use super::subject::{Loggable, Place};

impl Loggable for BatchExport {
    const SCOPE: &'static str = "BatchExport";

    fn item_id(head: &Self::Head) -> String {
        head.id.to_string()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.project)))
    }
}

/// No value of a secret comes in here: what changes is the number of the record's changes, and that is not told.
impl Loggable for Secrets {
    const SCOPE: &'static str = "BatchExport";
    const HIDDEN: &'static [&'static str] = &["destination__secrets"];
    const IS_PART: bool = true;

    fn item_id(head: &Self::Head) -> String {
        head.1.to_string()
    }

    fn place(head: &Self::Head, tx: &impl Tx) -> Result<Place> {
        let project = projects::find_by_id(tx, head.0)?;
        Ok((project.map(|project| project.organization), Some(head.0)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("destination__secrets".to_owned(), row.version.into())]))
    }
}
