//! The records of all resources except the activity log, which describes their changes.

use crate::resources::list::for_each_resource;
use crate::resources::registration::{LogRules, RegisteredRecord};
use crate::store::Table;

macro_rules! list_records {
    (logged: $($resource:ident)*; log: $log:ident) => {
        /// The records of each resource.
        const RECORDS: &[&[&dyn RegisteredRecord]] = &[$(crate::resources::$resource::RECORDS),*];
    };
}

for_each_resource!(list_records);

/// Returns the records, in an order in which a record follows all records that it refers to.
pub fn logged_records() -> impl DoubleEndedIterator<Item = &'static dyn RegisteredRecord> {
    RECORDS.iter().copied().flatten().copied()
}

/// Returns how the log describes the records of a table, if it covers them.
pub fn log_rules_of(table: Table) -> Option<&'static LogRules> {
    logged_records().find(|record| record.table() == table)?.log_rules()
}
