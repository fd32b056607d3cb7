//! The file as a whole: copying, backing up, restoring, checking and compacting it.

pub(super) mod backup;
pub(super) mod check;
pub(super) mod compact;
pub(super) mod compact_copy;
pub(super) mod restore;
pub(super) mod sent_copy;
pub(super) mod sliced_walk;
pub(super) mod space;
