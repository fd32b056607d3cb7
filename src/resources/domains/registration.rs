//! What domains declare about their records.

use crate::error::Result;
use crate::resources::loggable::{Location, Loggable, public_text};
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Row, Tx};

use super::Domain;

/// The records of domains.
pub const RECORDS: &[&dyn RegisteredRecord] =
    &[&record::<Domain>().logged().deleted_with_organization()];

impl Loggable for Domain {
    const SCOPE: &'static str = "OrganizationDomain";

    fn item_id(meta: &Self::Meta) -> String {
        meta.1.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.0), None))
    }

    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        public_text(row, "domain")
    }
}
