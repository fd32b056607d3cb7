//! How much the tests try, and with which random numbers. Each run tries the same, unless a variable says otherwise.

use std::fmt::Display;
use std::str::FromStr;

/// Returns the number in this variable of the environment, or `default`.
pub fn size<T: FromStr + Display>(variable: &str, default: T) -> T {
    let Ok(told) = std::env::var(variable) else { return default };
    told.parse().unwrap_or_else(|_| panic!("{variable} is a number, such as {default}"))
}

/// Returns the seed of all random numbers: that of `STEWARD_SEED`, or 1. Prints it, so that the output of a failed test says how
/// to repeat the test.
pub fn seed() -> u64 {
    let seed = size("STEWARD_SEED", 1);
    println!("STEWARD_SEED={seed}");
    seed
}
