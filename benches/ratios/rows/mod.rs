//! The rows of the table, by what they need: each file opens its sites, measures in turns and closes them again.

mod backups;
mod keys;
mod life;
mod reads;
mod writes;

pub use backups::backups;
pub use keys::keys;
pub use life::life;
pub use reads::reads;
pub use writes::writes;

use crate::plan::Run;
use crate::report::{grouped, middle};

/// Every row there is.
pub const ALL: [u8; 19] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];

/// "80,000 of 100,000 req/s": the middle rates of a thing and of what it is measured against.
fn rates(rounds: &[(Run, Run)]) -> String {
    let (own, other) =
        (middle(rounds, |(own, _)| own.rate()), middle(rounds, |(_, other)| other.rate()));
    format!("{} of {} req/s", grouped(own), grouped(other))
}

/// "11.2 of 9.3 us": the middle CPU times an answer of a thing and of what it is measured against.
fn costs(rounds: &[(Run, Run)]) -> String {
    let (own, other) =
        (middle(rounds, |(own, _)| micros(own)), middle(rounds, |(_, other)| micros(other)));
    format!("{own:.1} of {other:.1} us")
}

/// Server CPU an answer in microseconds.
fn micros(run: &Run) -> f64 {
    run.cpu_per_answer() * 1e6
}

/// The middle of the rounds' ratios of rates.
fn rate_ratio(rounds: &[(Run, Run)]) -> f64 {
    middle(rounds, |(own, other)| own.rate() / other.rate())
}

/// The middle of the rounds' ratios of CPU an answer.
fn cost_ratio(rounds: &[(Run, Run)]) -> f64 {
    middle(rounds, |(own, other)| own.cpu_per_answer() / other.cpu_per_answer())
}
