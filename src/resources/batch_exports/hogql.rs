//! The query of an export, in `HogQL`: SQL in the manner of `ClickHouse` (facts-crosscutting §e).

use std::any::TypeId;
use std::ops::ControlFlow;
use std::thread;

use serde_json::Value;
use sqlparser::ast::{
    ObjectName, ObjectNamePart, Query, Select, SetExpr, TableFactor, TableWithJoins, Visit, Visitor,
};
use sqlparser::dialect::{ClickHouseDialect, Dialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, Result};
use crate::input::{Kind, Schema, Text};

/// How many characters a query has at the most.
const MAX_LENGTH: usize = 16_384;
/// How many tokens it has at the most, spaces aside: a chain of operators nests as deep as it is long.
const MAX_TOKENS: usize = 2_000;
/// How deep it nests at the most.
const MAX_DEPTH: usize = 48;
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
#[derive(Debug)]
struct HogQl;

impl Dialect for HogQl {
    fn dialect(&self) -> TypeId {
        TypeId::of::<ClickHouseDialect>()
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
    let tokens = Tokenizer::new(&HogQl, text).tokenize().ok()?;
    let told = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).count();
    if told > MAX_TOKENS {
        return None;
    }
    let mut parser = Parser::new(&HogQl).with_recursion_limit(MAX_DEPTH).with_tokens(tokens);
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
    match &*query.body {
        // It is visited by itself.
        SetExpr::Query(_) => Ok(()),
        SetExpr::Select(select) => require_from_events(select),
        SetExpr::SetOperation { .. } => Err(UNION),
        _ => Err(ELSEWHERE),
    }
}

fn require_from_events(select: &Select) -> Result<(), &'static str> {
    if select.into.is_some() {
        return Err(UNREADABLE);
    }
    match select.from.as_slice() {
        [] => Err(ELSEWHERE),
        [TableWithJoins { relation, joins }] if joins.is_empty() => match relation {
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str) -> Result<(), &'static str> {
        check_aside(text).expect("a thread")
    }

    #[test]
    fn queries_over_events_are_read() {
        for text in [
            "SELECT * FROM events",
            "select event, timestamp from events",
            "SELECT uuid AS id, properties.$browser AS browser, properties['$os'] FROM events AS e",
            "SELECT toString(e.uuid) FROM `events` e WHERE e.event IN ('a', 'b') AND NOT team_id = 2 LIMIT 10",
            "SELECT count(), sum(if(event = '$pageview', 1, 0)) FROM events GROUP BY event ORDER BY 1 DESC",
            "SELECT arrayMap(x -> x + 1, [1, 2]), (1, 'a'), NULL FROM events -- a comment",
            "SELECT event FROM events WHERE timestamp > now() - INTERVAL 1 DAY",
            "SELECT event FROM events WHERE distinct_id IN (SELECT distinct_id FROM events WHERE event = 'x')",
            "(SELECT event FROM events)",
            "SELECT 'it''s; DROP \\' UNION JOIN' FROM events",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn other_queries_are_refused_for_what_is_wrong() {
        for (wrong, texts) in [
            (
                UNREADABLE,
                &[
                    "",
                    "events",
                    "SELECT",
                    "SELECT * FROM",
                    "SELECT * FROM events;",
                    "SELECT * FROM events; SELECT 1",
                    "SELECT (1 FROM events",
                    "SELECT 'x FROM events",
                    "SELECT * FROM events WHERE",
                    "DROP TABLE events",
                    "SELECT * INTO t FROM events",
                    "EXPLAIN SELECT * FROM events",
                    "😀",
                    "SELECT * FROM events )",
                ][..],
            ),
            (
                UNION,
                &[
                    "SELECT 1 FROM events UNION ALL SELECT 2 FROM events",
                    "SELECT event FROM events INTERSECT SELECT event FROM events",
                    "(SELECT 1 FROM events UNION ALL SELECT 2 FROM events)",
                    "SELECT * FROM events WHERE a IN (SELECT a FROM events UNION ALL SELECT b FROM events)",
                ],
            ),
            (
                JOIN,
                &[
                    "SELECT * FROM events JOIN persons ON true",
                    "SELECT * FROM events e LEFT JOIN events f ON e.id = f.id",
                    "SELECT * FROM events, persons",
                    "SELECT * FROM (events JOIN persons ON 1)",
                ],
            ),
            (
                ELSEWHERE,
                &[
                    "SELECT 1",
                    "SELECT * FROM persons",
                    "SELECT * FROM Events",
                    "SELECT * FROM db.events",
                    "SELECT * FROM events()",
                    "SELECT * FROM numbers(10)",
                    "SELECT * FROM (SELECT * FROM events)",
                    "VALUES (1)",
                    "WITH events AS (SELECT * FROM persons) SELECT * FROM events",
                    "SELECT (SELECT max(id) FROM persons) FROM events",
                    "SELECT * FROM events WHERE person_id IN (SELECT id FROM persons)",
                    "INSERT INTO events VALUES (1)",
                    "DELETE FROM events",
                ],
            ),
        ] {
            for text in texts {
                assert_eq!(check(text), Err(wrong), "{text}");
            }
        }
    }

    #[test]
    fn what_nests_deep_or_runs_long_is_refused_or_read_within_bounds() {
        let many = |part: &str| part.repeat(MAX_LENGTH / part.len() - 20);
        let within = |part: &str, tokens: usize| part.repeat((MAX_TOKENS - 20) / tokens);
        for text in [
            many("("),
            many("["),
            many("SELECT ("),
            format!("SELECT {}1 FROM events", many("(")),
            format!("SELECT {}1 FROM events", within("(", 1)),
            format!("SELECT {}1 FROM events", within("- ", 1)),
            format!("SELECT {}1 FROM events", within("NOT ", 1)),
            format!("SELECT {}1 FROM events", within("INTERVAL ", 1)),
            format!("SELECT {}1 FROM events", within("INTERVAL (", 2)),
            format!("SELECT {}1 FROM events", within("CASE WHEN ", 2)),
            format!("SELECT {}1 FROM events", within("DATE ", 1)),
            format!("SELECT {}1 FROM events", within("x -> ", 2)),
            format!("SELECT {}1 FROM events", within("f(", 2)),
            format!("SELECT {}1 FROM events", within("a[", 2)),
            format!("SELECT {}1 FROM events", within("CAST(", 2)),
            format!("SELECT CAST(1 AS {}Int8 FROM events", within("Array(", 2)),
            format!("SELECT CAST(1 AS {}Int8 FROM events", within("Nullable(", 2)),
            format!("SELECT CAST(1 AS {}Int8 FROM events", within("Tuple(a ", 3)),
            format!("SELECT CAST(1 AS {}Int8 FROM events", within("STRUCT<a ", 3)),
            format!("SELECT {}1 FROM events", within("EXISTS (SELECT ", 3)),
            format!("SELECT * FROM {}events", within("(", 1)),
            format!("SELECT * FROM {}", within("(SELECT * FROM ", 4)),
            format!("SELECT 1 FROM events{}", within(" UNION ALL SELECT 1 FROM events", 6)),
            format!("SELECT * FROM events{}", within(" JOIN events", 2)),
            format!("EXPLAIN {}", within("EXPLAIN ", 1)),
            format!("WITH {}", within("a AS (WITH ", 4)),
            format!("FROM {}", within("FROM (", 2)),
        ] {
            let begun = std::time::Instant::now();
            assert!(check(&text).is_err(), "{}", &text[..60]);
            assert!(begun.elapsed().as_millis() < 500, "{:?} for {}", begun.elapsed(), &text[..60]);
        }
        for text in [
            format!("SELECT 1{} FROM events", within(" + 1", 2)),
            format!("SELECT 1 FROM events WHERE a{}", within(" OR b", 2)),
            format!("SELECT a{} FROM events", within("::Int8", 2)),
            format!("SELECT a{} FROM events", within("[1]", 3)),
            format!("SELECT a{} FROM events", within(".b", 2)),
            format!("SELECT {}a FROM events", within("a, ", 2)),
        ] {
            assert_eq!(check(&text), Ok(()), "{}", &text[..60]);
            assert_eq!(check(&(text + &" + 1".repeat(20))), Err(UNREADABLE));
        }
    }

    proptest! {
        #[test]
        fn any_tokens_are_judged(parts in proptest::collection::vec(
            prop::sample::select(vec![
                "SELECT", "FROM", "events", "(", ")", "[", "]", "WHERE", "JOIN", "ON", "UNION", "ALL", "AS", "a", "1",
                "'x'", ",", ".", "*", "CASE", "WHEN", "THEN", "END", "IN", "NOT", "INTERVAL", "DAY", "CAST", "->", "-",
                "LIMIT", "BY", "WITH", "ORDER", "GROUP", "<", ">", "=", "::", "Array", "EXISTS", "{", "}", "LATERAL", "DATE",
            ]), 0..60)
        ) {
            let _ = check(&parts.join(" "));
        }

        #[test]
        fn any_text_is_judged(text in ".{0,80}") {
            let _ = check(&text);
        }
    }
}
