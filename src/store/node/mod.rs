//! This process as a node of a shared database.

pub(super) mod compare;
pub(super) mod heartbeat;
pub(super) mod nodes;
pub(super) mod shared_database;
pub(super) mod shared_restore;
