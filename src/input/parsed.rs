//! Parsed bodies whose errors are reported later.

use serde_json::Value;

use super::{Input, JsonObject};
use crate::base::error::Result;

/// A parsed body whose error is reported later.
///
/// PostHog reports a missing object or missing rights before an invalid field. The body is therefore parsed once,
/// ahead of the rule. The rule asks for the result at its own point, and may run twice.
#[derive(Debug, Clone)]
pub struct Parsed<T>(Result<T>);

impl<T: Input> Parsed<T> {
    /// Parses `body` and stores the result.
    #[must_use]
    pub fn new(body: &JsonObject) -> Self {
        Self(T::parse(body))
    }

    /// Returns the input.
    ///
    /// # Errors
    /// The error of [`Input::parse`], on every call.
    pub fn get(&self) -> Result<&T> {
        self.0.as_ref().map_err(Clone::clone)
    }
}

/// A parsed body, one text of which may stay as it is although no request may set it: a template or a signup has set it.
#[derive(Debug, Clone)]
pub struct ParsedWithKept<T> {
    parsed: Parsed<T>,
    /// The text, and the body without it. `None` if the body is valid.
    kept: Option<(String, Parsed<T>)>,
}

impl<T: Input> ParsedWithKept<T> {
    /// Parses `body`. The text that may stay is its member `name`.
    #[must_use]
    pub fn new(body: &JsonObject, name: &str) -> Self {
        let parsed = Parsed::<T>::new(body);
        let text = body.get(name).and_then(Value::as_str).filter(|_| parsed.get().is_err());
        let kept = text.map(|text| {
            let mut rest = body.clone();
            rest.shift_remove(name);
            (text.to_owned(), Parsed::new(&rest))
        });
        Self { parsed, kept }
    }

    /// Returns the input for an object with this text.
    ///
    /// # Errors
    /// The error of [`Input::parse`], on every call.
    pub fn get(&self, stored: Option<&str>) -> Result<&T> {
        match &self.kept {
            Some((sent, rest)) if stored == Some(sent.as_str()) => rest.get(),
            _ => self.parsed.get(),
        }
    }
}
