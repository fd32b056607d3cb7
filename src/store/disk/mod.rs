//! The data file on its disk, redb over it, and the names by which it is found.

pub(super) mod address;
pub(super) mod engine;
pub(super) mod file;
pub mod file_system;
pub(super) mod open_error;
pub(super) mod overlay;
pub(super) mod owner;
pub(super) mod panics;
pub(super) mod paths;
pub(super) mod place;
pub(super) mod shown_path;
