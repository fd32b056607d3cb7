//! The tests of the service through its API, in this process, on a real data file each. They need nothing but Rust and a C
//! compiler.

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

mod access_controls;
mod activity;
mod api_keys;
mod auth;
mod batch_exports;
mod clients;
mod compaction;
mod conformance;
mod console;
mod dashboards;
mod domains;
mod dry_run;
mod environments;
mod exports;
mod golden;
mod http;
mod idempotency;
mod insights;
mod invites;
mod members;
mod metrics;
mod moving;
mod nodes;
mod openapi;
mod organizations;
mod outbox;
mod projects;
mod roles;
mod secrets_rotate;
mod sessions;
mod set_clock;
mod sharing;
mod signup;
mod tidy;
mod tiles;
mod users;

#[expect(dead_code, reason = "other test binaries use the other helpers")]
#[path = "../support"]
mod support {
    pub mod activity;
    pub mod api_keys;
    pub mod batch_exports;
    pub mod bodies;
    pub mod console;
    pub mod contract;
    pub mod crawler;
    pub mod dashboards;
    pub mod dns;
    pub mod domains;
    pub mod dry_run;
    pub mod exports;
    pub mod generated_page;
    pub mod idempotency;
    pub mod invites;
    pub mod log;
    pub mod metrics;
    pub mod objects;
    pub mod postgres;
    pub mod prelude;
    pub mod refusals;
    pub mod roles;
    pub mod sessions;
    pub mod setup;
    pub mod sharing;
    pub mod signup;
    pub mod smtp;
    pub mod wait;
    mod workspace;

    pub use workspace::*;
}
