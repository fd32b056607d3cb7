//! See `entries.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steward_fuzz::run("forms", data));
