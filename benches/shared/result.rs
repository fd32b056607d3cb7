//! The errors of the benchmark programs, and how they print numbers.

use std::error::Error;
use std::fmt::Display;

/// A result whose error is a message for people.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Adds the failed action to an error.
pub trait Context<T> {
    fn context(self, doing: impl Display) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl Display) -> Result<T> {
        self.map_err(|error| format!("{doing}: {error}").into())
    }
}

/// Returns an error with this message.
pub fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(text.into().into())
}

/// Returns the whole number with a comma after each three digits, such as 107,000.
pub fn grouped(number: impl Display) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
