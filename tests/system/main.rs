//! The tests of the real binary: its commands, its connections, its pages in a browser, and its service manager.
//!
//! `cargo test --test system` runs them. A test fails with the name of a package if a tool is missing.

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

mod cli;
mod connections;
mod console;
mod data;
mod pages;
mod prelude;
mod service;

#[expect(dead_code, reason = "other test binaries use the other helpers")]
#[path = "../support"]
mod support {
    pub mod browser;
    mod chromedriver;
    pub mod console;
    pub mod contract;
    pub mod crawler;
    pub mod dns;
    pub mod every_text;
    pub mod exports;
    pub mod line;
    pub mod metrics;
    pub mod objects;
    pub mod postgres;
    pub mod process;
    pub mod sessions;
    pub mod sharing;
    pub mod smtp;
    pub mod systemd;
    pub mod terminal;
    pub mod wait;
    mod workspace;

    pub use workspace::*;
}
