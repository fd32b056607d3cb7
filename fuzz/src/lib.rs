//! The entries that the fuzz targets share with the bounded run in `cargo test`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a finding is a panic"
)]

use std::sync::OnceLock;

pub mod entries;

/// Passes bytes to the entry `name`. The service lives as long as the process.
pub fn run(name: &str, data: &[u8]) {
    static BENCH: OnceLock<entries::Bench> = OnceLock::new();
    let entry = entries::ENTRIES.iter().find(|(known, _)| *known == name).expect("an entry").1;
    entry(BENCH.get_or_init(entries::Bench::new), data);
}
