//! Reading one committed state.

pub(super) mod bounded_read;
pub(super) mod check_report;
pub(super) mod opened_file;
pub(super) mod progress;
pub(super) mod snapshot;
pub(super) mod stored_rows;
