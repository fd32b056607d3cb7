//! Whether this release can read a file, as what, and of which workspace it is.

pub(super) mod copy_position;
pub(super) mod migrate;
pub(super) mod secrets;
