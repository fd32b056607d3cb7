//! What the activity log declares about its records.

use crate::resources::registration::{RegisteredRecord, record};

use super::Entry;

/// The records of the activity log.
pub const RECORDS: &[&dyn RegisteredRecord] =
    &[&record::<Entry>().deleted_with_organization().names_users(Entry::visit_users)];
