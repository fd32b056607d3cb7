//! What sharing declares about its records.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::resources::loggable::{FieldAction, Location, Loggable};
use crate::resources::projects;
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Key, Reference, Row, Table, Tx};

use super::{REDACTION, Sharing};

/// The records of sharing.
pub const RECORDS: &[&dyn RegisteredRecord] =
    &[&record::<Sharing>().redacted(REDACTION).logged().deleted_with_project()];

/// Sharing of a dashboard. The dashboard's own fields record whether sharing is enabled, so the only field here changes
/// when the access token is replaced.
impl Loggable for Sharing {
    const SCOPE: &'static str = "Dashboard";
    const ACTIONS: &'static [FieldAction] =
        &[FieldAction::Changed { field: "access_token", action: "access token refreshed" }];
    const HIDDEN: &'static [&'static str] = &["access_token"];

    fn item_id(meta: &Self::Meta) -> String {
        meta.dashboard.to_string()
    }

    fn location(meta: &Self::Meta, tx: &impl Tx) -> Result<Location> {
        let project = projects::find_by_id(tx, meta.project)?;
        Ok((project.map(|project| project.organization), Some(meta.project)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        let key = (meta.project, meta.dashboard).encoded();
        Some(Reference { table: Table::Dashboards, key })
    }

    fn blank() -> Result<Option<Map<String, Value>>> {
        Ok(Some(Map::from_iter([("access_token".to_owned(), 0.into())])))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_token".to_owned(), row.meta.serial.into())]))
    }
}
