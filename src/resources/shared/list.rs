//! The list of resources, and the records of all except the activity log, which describes their changes.

use crate::resources::shared::loggable::LogRules;
use crate::resources::shared::registration::RegisteredRecord;
use crate::store::Table;

/// Passes the names of all resources to the macro `$then`: first those whose changes the activity log covers.
///
/// The order is the order of the API document. A record refers only to records of resources before its own, and in its
/// own only to records that `RECORDS` lists before it. A deleted parent leaves records that are deleted in the reverse
/// order.
macro_rules! for_each_resource {
    ($then:ident) => {
        $then! {
            logged:
                users
                organizations
                members
                roles
                projects
                api_keys
                sessions
                dashboards
                insights
                access_controls
                collaborators
                sharing
                domains
                batch_exports
                invites
                signup;
            log: activity
        }
    };
}

pub(crate) use for_each_resource;

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
