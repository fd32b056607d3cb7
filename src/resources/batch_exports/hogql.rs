//! Checks the query of an export. It is written in `HogQL`, a dialect of `ClickHouse` SQL; see
//! `docs/spec/batch-exports.md`.
//!
//! Only the form of a query is checked: its clauses, expressions and tables. Functions and columns are not known here.

mod cursor;
mod expression;
mod parser;
mod tokens;

use serde_json::Value;

use crate::error::{Error, Result, TextPosition};
use crate::input::{FieldType, Schema, Text};

use cursor::Parser;
use tokens::tokenize;

/// The maximum number of characters.
pub const MAX_LENGTH: usize = 256 * 1024;
/// The maximum depth of nested parts.
const MAX_DEPTH: usize = 48;

const UNREADABLE: &str = "Failed to parse query";
const UNION: &str = "UNIONs are not supported";
const JOIN: &str = "JOINs are not supported";
const NOT_EVENTS: &str = "Query must only SELECT FROM events";

/// A query that selects from `events` only, stored as sent without surrounding whitespace. Fails with the codes of [`Text`], or with
/// `invalid_input` and the position of the fault.
#[derive(Debug, Clone, Copy)]
pub struct HogQlQuery;

impl FieldType for HogQlQuery {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Text::<MAX_LENGTH>::read(value)?;
        match check(&text) {
            Ok(()) => Ok(text),
            Err((detail, byte)) => {
                let position = TextPosition::of(&text, byte);
                Err(Error::invalid("invalid_input", detail).at(position))
            }
        }
    }

    fn schema() -> Schema {
        Text::<MAX_LENGTH>::schema()
    }
}

/// Fails with what is wrong with a query, and with the byte at which the fault begins.
fn check(text: &str) -> Result<(), (&'static str, usize)> {
    let found = tokenize(text).map_err(|byte| (UNREADABLE, byte))?;
    Parser::check(&found.tokens).map_err(|refusal| {
        let index = found.starts.len() - refusal.tokens_left;
        let end = text.trim_end().len();
        (refusal.detail, found.starts.get(index).copied().unwrap_or(end))
    })
}

#[cfg(test)]
mod tests;
