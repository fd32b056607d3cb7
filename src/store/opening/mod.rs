//! Creating a data file, opening one read-only, and refusing one with records of a newer release.

pub(super) mod create;
pub(super) mod read_only;
pub(super) mod upgrade;
