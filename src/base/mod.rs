//! Values that all of the program uses: errors, times, secrets, JSON and tasks. This room uses no other.

pub mod erased;
pub mod error;
pub mod json;
pub mod patch;
pub mod secret;
pub mod tasks;
pub mod time;
