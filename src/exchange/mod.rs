//! Requests and responses without HTTP: what a handler returns, and what is stored of it.

pub mod dry_run;
pub mod etag;
pub mod idempotency;
pub mod response;
