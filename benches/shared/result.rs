//! The errors of the benchmark programs.

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
