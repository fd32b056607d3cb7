//! Whether this release can read a file, as what, and of which workspace it is.

pub(super) mod migrate;
pub(super) mod secrets;
pub(super) mod stored_position;
