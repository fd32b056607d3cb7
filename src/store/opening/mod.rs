//! Creating a data file, and opening one read-only.

pub(super) mod create;
pub(super) mod read_only;
