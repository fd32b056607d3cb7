//! What keys and values mean. Nothing here names redb.

pub mod key;
pub(super) mod payload;
pub(super) mod per_table;
pub(super) mod position;
pub(super) mod raw;
pub mod schema;
pub(super) mod sealed;
pub(super) mod window;
