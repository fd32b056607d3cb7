//! What organizations declare about their records.

use crate::error::Result;
use crate::resources::loggable::{Location, Loggable};
use crate::resources::pending_deletion::PendingDeletion;
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::Tx;

use super::{Organization, free_arriving_slug};

/// The records of organizations.
pub const RECORDS: &[&dyn RegisteredRecord] = &[&record::<Organization>()
    .logged()
    .parent(PendingDeletion::Organization)
    .adapted(free_arriving_slug)];

impl Loggable for Organization {
    const SCOPE: &'static str = "Organization";

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.id), None))
    }
}
