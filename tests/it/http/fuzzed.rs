//! A bounded run of the entry points of the fuzz targets: no input leads to an invalid response.
//!
//! `FUZZ` sets the number of inputs for each entry point. The targets in `fuzz/` run without a bound.

#[path = "../../../fuzz/src/entries.rs"]
mod entries;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};

use entries::{Bench, ENTRIES};

/// The default number of inputs for each entry point.
const INPUTS: u32 = 250;

#[test]
fn arbitrary_bytes_never_produce_an_invalid_response() {
    let cases = std::env::var("FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(INPUTS);
    let bench = Bench::new();
    for (name, entry) in ENTRIES {
        // Each import creates, syncs and checks a data file, so it is slow.
        let cases = if name == "imports" { cases / 10 } else { cases };
        let config = Cases { cases, failure_persistence: None, ..Cases::default() };
        let inputs = prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 0..80),
            1 => prop::collection::vec(any::<u8>(), 80..2000),
        ];
        let ran = TestRunner::new(config).run(&inputs, |data| {
            entry(&bench, &data);
            Ok(())
        });
        if let Err(failure) = ran {
            panic!("{name}: {failure}");
        }
    }
    bench.check();
}
