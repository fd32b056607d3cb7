//! The tests of the service, through its API, on a real data file each.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test that cannot go on says so by panicking"
)]

mod smoke;
mod support;
mod tidy;
