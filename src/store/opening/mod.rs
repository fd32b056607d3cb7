//! Creating a data file, opening one read-only, and storing the records of older layouts in the current one.

pub(super) mod create;
pub(super) mod read_only;
pub(super) mod upgrade;
