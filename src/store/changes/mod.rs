//! What a batch changes: in memory until it is applied, and for the copies that follow it.

pub(super) mod batch_diff;
pub(super) mod fill;
pub(super) mod hot_values;
pub(super) mod pending_values;
pub(super) mod value_log;
pub(super) mod write_changes;
