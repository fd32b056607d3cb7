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

mod cli;
mod durability;
mod faults;
mod first_run;
mod smoke;
mod support;
mod transport;
