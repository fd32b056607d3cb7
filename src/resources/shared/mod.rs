//! What all resources use: what they declare about their records, how they read lists, and what rules and the log are
//! about.

pub mod access_objects;
pub mod access_subject;
pub mod import_mark;
pub mod list;
pub mod loggable;
pub mod pending_deletion;
pub mod prelude;
pub mod reading;
pub mod registration;
