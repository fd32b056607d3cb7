//! One module per resource: `mod.rs` holds the records and their rules, `api.rs` what requests and responses contain and
//! what happens to the records, `http.rs` has the routes. [`shared`] has what all of them use.
//!
//! [`shared::list`] is the only list of resources. Other code finds their records by [`records`], and the router their
//! routes. No two modules use each other, directly or through others.

pub mod access_controls;
pub mod activity;
pub mod api_keys;
pub mod batch_exports;
pub mod cascade_delete;
pub mod collaborators;
pub mod dashboards;
pub mod domains;
pub mod insights;
pub mod invites;
pub mod members;
pub mod organizations;
pub mod projects;
pub mod relocation;
pub mod roles;
pub mod sessions;
pub mod shared;
pub mod sharing;
pub mod signup;
pub mod users;

use crate::base::error::Result;
use crate::exchange::idempotency;
use crate::store::{
    Record, RecordRegistry, RecordType, RecordTypeOf, Redaction, Reference, Snapshot, Table, Tx,
};
use crate::{leases, mail};
use shared::import_mark::ImportMark;
use shared::list::logged_records;
use shared::pending_deletion::PendingDeletion;
use shared::registration::RegisteredRecord;

/// The types of records that belong to no resource.
const OTHER_RECORD_TYPES: &[&[&dyn RecordType]] = &[
    mail::RECORD_TYPES,
    idempotency::RECORD_TYPES,
    leases::RECORD_TYPES,
    &[
        &RecordTypeOf::<PendingDeletion>(Redaction::Open),
        &RecordTypeOf::<ImportMark>(Redaction::Open),
    ],
];

/// Returns the records of all resources, in an order in which a record follows all records that it refers to.
pub fn records() -> impl DoubleEndedIterator<Item = &'static dyn RegisteredRecord> {
    logged_records().chain(activity::RECORDS.iter().copied())
}

/// Returns the record of a resource that has this table.
fn record_in(table: Table) -> Option<&'static dyn RegisteredRecord> {
    records().find(|record| record.table() == table)
}

/// Returns the record types that a data file is checked, exported and imported with.
pub fn record_registry() -> RecordRegistry {
    let others = OTHER_RECORD_TYPES.iter().copied().flatten().copied();
    RecordRegistry {
        record_types: records().map(RegisteredRecord::record_type).chain(others).collect(),
        is_pending: is_pending_deletion,
    }
}

/// Returns whether a dangling reference is expected, because its target was deleted and the background task will delete
/// the record that refers to it. Records that are not parents are deleted after, or together with, the records that
/// refer to them.
fn is_pending_deletion(tx: &Snapshot, reference: &Reference) -> Result<bool> {
    let target = record_in(reference.table);
    let pending = target.and_then(|target| target.pending_deletion(&reference.key));
    pending.map_or(Ok(false), |pending| tx.exists::<PendingDeletion>(&pending.key()))
}
