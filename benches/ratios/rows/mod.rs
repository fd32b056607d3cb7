//! The rows of the table, grouped by the data that they need. Each file opens its sites, measures in alternation
//! and closes the sites.

mod backups;
mod console;
mod keys;
mod life;
mod reads;
mod writes;

pub use backups::backups;
pub use console::console;
pub use keys::keys;
pub use life::life;
pub use reads::{insights, reads};
pub use writes::writes;

use crate::plan::Run;
use crate::report::{grouped, middle};

/// All rows.
pub const ALL: [u8; 27] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27,
];

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

/// Returns the median ratio of rates.
fn rate_ratio(rounds: &[(Run, Run)]) -> f64 {
    middle(rounds, |(own, other)| own.rate() / other.rate())
}

/// Returns the median ratio of CPU times per response.
fn cost_ratio(rounds: &[(Run, Run)]) -> f64 {
    middle(rounds, |(own, other)| own.cpu_per_answer() / other.cpu_per_answer())
}
