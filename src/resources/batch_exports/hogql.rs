//! Checks the query of an export. It is written in `HogQL`, a dialect of `ClickHouse` SQL; see
//! `docs/spec/batch-exports.md`.
//!
//! Only the form of a query is checked: its clauses, expressions and tables. Functions and columns are not known here.

mod cursor;
mod expression;
mod parser;
mod tokens;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::input::{FieldType, Schema, Text};

use cursor::Parser;
use tokens::tokenize;

/// The maximum number of characters.
const MAX_LENGTH: usize = 16_384;
/// The maximum number of tokens.
const MAX_TOKENS: usize = 2_000;
/// The maximum depth of nested parts.
const MAX_DEPTH: usize = 48;

const UNREADABLE: &str = "Failed to parse query";
const UNION: &str = "UNIONs are not supported";
const JOIN: &str = "JOINs are not supported";
const NOT_EVENTS: &str = "Query must only SELECT FROM events";

/// A query that selects from `events` only, stored as sent. Fails with the codes of [`Text`], or with
/// `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct HogQlQuery;

impl FieldType for HogQlQuery {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Text::<MAX_LENGTH>::read(value)?;
        match check(&text) {
            Ok(()) => Ok(text),
            Err(refusal) => Err(Error::invalid("invalid_input", refusal)),
        }
    }

    fn schema() -> Schema {
        Text::<MAX_LENGTH>::schema()
    }
}

fn check(text: &str) -> Result<(), &'static str> {
    Parser::check(&tokenize(text, MAX_TOKENS).ok_or(UNREADABLE)?)
}

#[cfg(test)]
mod tests;
