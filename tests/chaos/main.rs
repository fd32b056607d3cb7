//! Power cuts, failing disks, bit rot, kills, abuse, concurrent histories, and a model of the whole service.
//!
//! `cargo test --test chaos` runs them. `docs/reliability.md` says how to run each of them for longer.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unused_async,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test that cannot go on says so by panicking"
)]

mod abuse;
mod disks;
mod drill;
mod histories;
mod model;
mod nodes;
mod prelude;
mod sizes;

#[expect(dead_code, reason = "other test binaries use the other helpers")]
#[path = "../support"]
mod support {
    pub mod activity;
    pub mod batch_exports;
    pub mod contract;
    pub mod dashboards;
    pub mod day;
    pub mod dns;
    pub mod domains;
    pub mod dry_run;
    pub mod idempotency;
    pub mod invites;
    pub mod line;
    pub mod log;
    pub mod metrics;
    pub mod postgres;
    pub mod process;
    pub mod setup;
    pub mod sharing;
    pub mod signup;
    pub mod sim;
    pub mod smtp;
    pub mod wait;
    mod workspace;

    pub use workspace::*;
}
