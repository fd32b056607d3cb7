//! The query of an export, in `HogQL`: SQL in the manner of `ClickHouse` (facts-crosscutting §e).

use std::any::TypeId;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use sqlparser::ast::{
    Expr, ObjectName, ObjectNamePart, Query, Select, SetExpr, TableFactor, TableWithJoins, Visit,
    Visitor,
};
use sqlparser::dialect::{ClickHouseDialect, Dialect};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, Result};
use crate::input::{Kind, Schema, Text};

/// How many characters a query has at the most.
const MAX_LENGTH: usize = 16_384;
/// How many tokens it has at the most, spaces aside: a chain of operators nests as deep as it is long.
const MAX_TOKENS: usize = 2_000;
/// How deep it nests at the most.
const MAX_DEPTH: usize = 48;
/// How many expressions are begun at the most while it is read: sqlparser begins some anew, each time with all that
/// nests within.
const MAX_STEPS: usize = 20_000;
/// What the deepest and the longest query take to be read, many times over. Only what is used is ever there.
const STACK: usize = 64 << 20;

const UNREADABLE: &str = "Failed to parse query";
const UNION: &str = "UNIONs are not supported";
const JOIN: &str = "JOINs are not supported";
const ELSEWHERE: &str = "Query must only SELECT FROM events";

/// A query that selects from `events` and nothing else, kept as it was sent. Refused with the codes of
/// [`Text`] and then `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct HogQlQuery;

impl Kind for HogQlQuery {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Text::<MAX_LENGTH>::read(value)?;
        match check_aside(&text)? {
            Ok(()) => Ok(text),
            Err(wrong) => Err(Error::invalid("invalid_input", wrong)),
        }
    }

    fn schema() -> Schema {
        Text::<MAX_LENGTH>::schema()
    }
}

/// The words and signs of `ClickHouse`, with names that may have a `$` in them: `properties.$browser`.
#[derive(Debug, Default)]
struct HogQl {
    /// How many expressions were begun.
    steps: AtomicUsize,
}

impl Dialect for HogQl {
    fn dialect(&self) -> TypeId {
        TypeId::of::<ClickHouseDialect>()
    }

    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let begun = self.steps.fetch_add(1, Ordering::Relaxed);
        (begun >= MAX_STEPS).then_some(Err(ParserError::RecursionLimitExceeded))
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_ascii_alphabetic() || c == '_' || c == '$'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        self.is_identifier_start(c) || c.is_ascii_digit()
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_array_join_syntax(&self) -> bool {
        true
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn supports_in_unparenthesized_expr(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_limit_by(&self) -> bool {
        true
    }

    fn supports_prewhere(&self) -> bool {
        true
    }
}

/// Checks where there is room for what recurses: on the stack of a thread of its own.
fn check_aside(text: &str) -> Result<Result<(), &'static str>> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || check(text));
        let thread = thread.map_err(|error| Error::unavailable(1, error))?;
        // A query at which the parser panics is one that it cannot read.
        Ok(thread.join().unwrap_or(Err(UNREADABLE)))
    })
}

fn check(text: &str) -> Result<(), &'static str> {
    let query = parse(text).ok_or(UNREADABLE)?;
    match query.visit(&mut OnlyEvents) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(wrong) => Err(wrong),
    }
}

/// The tokens are counted before they are parsed: what follows recurses.
fn parse(text: &str) -> Option<Box<Query>> {
    let dialect = HogQl::default();
    let tokens = Tokenizer::new(&dialect, text).tokenize().ok()?;
    let told = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).count();
    if told > MAX_TOKENS {
        return None;
    }
    let mut parser = Parser::new(&dialect).with_recursion_limit(MAX_DEPTH).with_tokens(tokens);
    let query = parser.parse_query().ok()?;
    parser.expect_token(&Token::EOF).is_ok().then_some(query)
}

/// Holds the query, and every query within, to the rules.
struct OnlyEvents;

impl Visitor for OnlyEvents {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<&'static str> {
        match require_only_events(query) {
            Ok(()) => ControlFlow::Continue(()),
            Err(wrong) => ControlFlow::Break(wrong),
        }
    }
}

fn require_only_events(query: &Query) -> Result<(), &'static str> {
    // A name that is made up on the way could be `events`.
    if query.with.is_some() {
        return Err(ELSEWHERE);
    }
    if !query.locks.is_empty() {
        return Err(UNREADABLE);
    }
    match &*query.body {
        // It is visited by itself.
        SetExpr::Query(_) => Ok(()),
        SetExpr::Select(select) => require_from_events(select),
        SetExpr::SetOperation { .. } => Err(UNION),
        _ => Err(ELSEWHERE),
    }
}

fn require_from_events(select: &Select) -> Result<(), &'static str> {
    let foreign = select.into.is_some()
        || select.top.is_some()
        || !select.lateral_views.is_empty()
        || !select.connect_by.is_empty();
    if foreign {
        return Err(UNREADABLE);
    }
    match select.from.as_slice() {
        [] => Err(ELSEWHERE),
        [TableWithJoins { relation, joins }] if joins.is_empty() => match relation {
            TableFactor::Table { with_hints, .. } if !with_hints.is_empty() => Err(UNREADABLE),
            TableFactor::Table { name, args: None, .. } if is_events(name) => Ok(()),
            TableFactor::NestedJoin { .. } => Err(JOIN),
            _ => Err(ELSEWHERE),
        },
        _ => Err(JOIN),
    }
}

fn is_events(name: &ObjectName) -> bool {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => name.value == "events",
        _ => false,
    }
}

#[cfg(test)]
mod tests;
