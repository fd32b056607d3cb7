//! What keys and values mean. Nothing here names redb.

pub(super) mod checksum;
pub mod key;
pub(super) mod payload;
pub(super) mod per_table;
pub(super) mod position;
pub(super) mod raw;
pub mod schema;
pub(super) mod window;
