//! The thread that commits, and what other threads share with it.

pub(super) mod asker;
pub(super) mod file_place;
pub(super) mod metrics;
pub(super) mod queue;
pub(super) mod queued;
pub(super) mod rewrite;
pub(super) mod shared;
pub(super) mod swap;
pub(super) mod task;
pub(super) mod thread;
pub(super) mod watchers;
