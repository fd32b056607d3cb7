//! What `check`, exports and imports do with a record of any type.

pub(super) mod canonical;
pub(super) mod expected_counts;
pub(super) mod import_writer;
pub(super) mod json_lines;
pub(super) mod record_registry;
