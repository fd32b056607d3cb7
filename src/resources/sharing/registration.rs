//! What sharing declares about its records.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::resources::access_objects::Object;
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::Insight;
use crate::resources::loggable::{Location, Loggable};
use crate::resources::projects;
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Reference, Row, Tx};

use super::{Fields, REDACTION, Sharing};

/// The records of sharing.
pub const RECORDS: &[&dyn RegisteredRecord] =
    &[&record::<Sharing>().redacted(REDACTION).logged().deleted_with_project()];

impl Loggable for Sharing {
    const SCOPE: &'static str = Dashboard::SCOPE;
    const HIDDEN: &'static [&'static str] = &["access_token"];

    fn scope(meta: &Self::Meta) -> &'static str {
        match meta.object {
            Object::Dashboard(_) => Dashboard::SCOPE,
            Object::Insight(_) => Insight::SCOPE,
        }
    }

    fn item_id(meta: &Self::Meta) -> String {
        meta.object.number().to_string()
    }

    fn location(meta: &Self::Meta, tx: &impl Tx) -> Result<Location> {
        let project = projects::find_by_id(tx, meta.project)?;
        Ok((project.map(|project| project.organization), Some(meta.project)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(meta.object.reference(meta.project))
    }

    fn blank() -> Result<Option<Map<String, Value>>> {
        Ok(Some(logged_fields(0, false)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let fields: Fields = serde_json::from_slice(row.fields).map_err(Error::internal)?;
        Ok(logged_fields(row.meta.serial, fields.enabled))
    }
}

/// Returns the fields that the log compares. The serial number stands for the access token.
fn logged_fields(serial: u64, enabled: bool) -> Map<String, Value> {
    let fields = [("access_token", serial.into()), ("is_shared", enabled.into())];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
