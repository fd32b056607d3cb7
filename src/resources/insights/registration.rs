//! What insights declare about their records. Dashboards declare the insights themselves.

use crate::resources::registration::{RegisteredRecord, record};

use super::views::{BY_MEMBER, LastView};

/// The records of insights.
pub const RECORDS: &[&dyn RegisteredRecord] = &[&record::<LastView>()
    .deleted_with_project()
    .deleted_with_member(|tx, member, limit| tx.remove_indexed(&BY_MEMBER, &member, limit))];
