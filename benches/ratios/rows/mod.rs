//! The rows of the table, grouped by the data that they need. Each file opens its sites, measures in alternation
//! and closes the sites.

mod backups;
mod builds;
mod console;
mod keys;
mod life;
mod nodes;
#[cfg(feature = "sqlite-peer")]
mod peers;
mod reads;
mod shared;
mod test_runs;
mod writes;

pub use backups::backups;
pub use builds::builds;
pub use console::console;
pub use keys::keys;
pub use life::life;
pub use nodes::nodes;
#[cfg(feature = "sqlite-peer")]
pub use peers::peers;
pub use reads::{insights, reads};
pub use shared::shared;
pub use test_runs::test_runs;
pub use writes::writes;

use crate::plan::Run;
#[cfg(not(feature = "sqlite-peer"))]
use crate::report::ReportLine;
use crate::report::{middle, millis};
use crate::{Result, Settings, grouped, progress};

/// All rows.
pub const ALL: [u8; 54] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
    51, 52, 53, 54,
];

/// Rows 28-30 need the feature `sqlite-peer`, which compiles `SQLite`.
#[cfg(not(feature = "sqlite-peer"))]
#[expect(clippy::unnecessary_wraps, reason = "called as the function of the feature is")]
pub fn peers(settings: &Settings) -> Result<Vec<ReportLine>> {
    if settings.wants(&[28, 29, 30]) {
        progress("rows 28-30 are left out: they need `--features sqlite-peer`");
    }
    Ok(Vec::new())
}

/// Measures as often as the settings say.
fn repeat<T>(
    settings: &Settings,
    what: &str,
    mut measure: impl FnMut() -> Result<T>,
) -> Result<Vec<T>> {
    let round = |number| {
        progress(&format!("{what}: round {number} of {}", settings.rounds));
        measure()
    };
    (1..=settings.rounds).map(round).collect()
}

/// Formats the median rates of the service and of its reference: "80,000 of 100,000 req/s".
fn rates(rounds: &[(Run, Run)]) -> String {
    let (own, other) =
        (middle(rounds, |(own, _)| own.rate()), middle(rounds, |(_, other)| other.rate()));
    format!("{} of {} req/s", grouped(own), grouped(other))
}

/// Formats the median CPU times per response of the service and of its reference: "11.2 of 9.3 us".
fn costs(rounds: &[(Run, Run)]) -> String {
    let (own, other) =
        (middle(rounds, |(own, _)| micros(own)), middle(rounds, |(_, other)| micros(other)));
    format!("{own:.1} of {other:.1} us")
}

/// Returns the server's CPU time per response, in microseconds.
fn micros(run: &Run) -> f64 {
    run.cpu_per_answer() * 1e6
}

/// Returns the median 99th percentiles of the latencies of the service and of its reference, in milliseconds.
fn p99(rounds: &[(Run, Run)]) -> [f64; 2] {
    let of = |run: &Run| millis(run.groups[0].quantile(0.99));
    [middle(rounds, |(own, _)| of(own)), middle(rounds, |(_, other)| of(other))]
}

/// Returns the median ratio of rates.
fn rate_ratio(rounds: &[(Run, Run)]) -> f64 {
    middle(rounds, |(own, other)| own.rate() / other.rate())
}

/// Returns the median ratio of CPU times per response.
fn cost_ratio(rounds: &[(Run, Run)]) -> f64 {
    middle(rounds, |(own, other)| own.cpu_per_answer() / other.cpu_per_answer())
}
