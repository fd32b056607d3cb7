//! Checks the query of an export. It is written in `HogQL`, a dialect of `ClickHouse` SQL; see
//! `docs/spec/batch-exports.md`.
//!
//! One pass over the tokens follows the brackets, and the clauses of each query. Expressions, functions and columns are
//! not known here.

use serde_json::Value;

use crate::base::error::{Error, Result, TextPosition};
use crate::input::{FieldType, Schema, Text};

/// The maximum number of characters.
pub const MAX_LENGTH: usize = 256 * 1024;

/// Words that begin a join.
const JOIN_WORDS: [&str; 13] = [
    "NATURAL", "GLOBAL", "ANY", "ASOF", "ANTI", "SEMI", "INNER", "CROSS", "LEFT", "RIGHT", "FULL",
    "ARRAY", "JOIN",
];
/// Words after which no table can come.
const CLAUSES: [&str; 9] =
    ["PREWHERE", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "SETTINGS"];
/// The characters of operators and punctuation.
const SYMBOLS: &str = "()[],.+-*/%=<>!~|&^?:";

/// A query that selects from `events` only, stored as sent without surrounding whitespace. Fails with the codes of
/// [`Text`], or with `invalid_input` and the position of the fault.
pub struct HogQlQuery;

impl FieldType for HogQlQuery {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Text::<MAX_LENGTH>::read(value)?;
        match check(&text) {
            Ok(()) => Ok(text),
            Err((refusal, byte)) => {
                let position = TextPosition::of(&text, byte);
                Err(Error::invalid("invalid_input", refusal.detail()).at(position))
            }
        }
    }

    fn schema() -> Schema {
        Text::<MAX_LENGTH>::schema()
    }
}

/// Why a query is refused. A query that breaks several rules is refused with the first of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    Unreadable,
    Union,
    Join,
    NotEvents,
}

impl Refusal {
    const fn detail(self) -> &'static str {
        match self {
            Self::Unreadable => "Failed to parse query",
            Self::Union => "UNIONs are not supported",
            Self::Join => "JOINs are not supported",
            Self::NotEvents => "Query must only SELECT FROM events",
        }
    }
}

/// What is wrong with a query, and the byte at which the fault begins.
type Fault = (Refusal, usize);

fn check(text: &str) -> Result<(), Fault> {
    let mut checker = Checker::default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let unreadable = (Refusal::Unreadable, at);
        let after = if rest.starts_with("--") {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").ok_or(unreadable)?.1
        } else {
            let (token, after) = first_token(rest).ok_or(unreadable)?;
            checker.read(token, at)?;
            after
        };
        rest = after.trim_start();
    }
    checker.end(text.trim_end().len())
}

/// A part of a query, between two brackets or two clauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    /// A query must come next.
    #[default]
    Query,
    /// A query or an expression comes next: a parenthesis was opened.
    Opened,
    /// The columns of a query.
    Columns,
    /// The table of a query comes next.
    Table,
    /// The alias and the sampling of the table.
    AfterTable,
    /// What follows the table.
    Clauses,
    /// An array or an index, in square brackets.
    Array,
    /// An expression in parentheses, or the rest of a query that is refused.
    Other,
}

/// The state of a check between two tokens.
#[derive(Default)]
struct Checker<'q> {
    part: Part,
    /// The parts around the brackets that are open, outermost first.
    outer: Vec<Part>,
    previous: Option<Token<'q>>,
    fault: Option<Fault>,
}

impl<'q> Checker<'q> {
    fn read(&mut self, token: Token<'q>, at: usize) -> Result<(), Fault> {
        let opened = if self.part == Part::Query { Part::Query } else { Part::Opened };
        self.part = self.part_after(token, at)?;
        match token {
            Token::Symbol('(') => self.open(opened),
            Token::Symbol('[') => self.open(Part::Array),
            Token::Symbol(bracket @ (')' | ']')) => self.close(bracket, at)?,
            _ => {}
        }
        self.previous = Some(token);
        Ok(())
    }

    fn end(mut self, at: usize) -> Result<(), Fault> {
        self.end_part(at)?;
        if !self.outer.is_empty() {
            return Err((Refusal::Unreadable, at));
        }
        self.fault.map_or(Ok(()), Err)
    }

    /// Returns the part that the token begins, or the part that it belongs to.
    fn part_after(&mut self, token: Token<'q>, at: usize) -> Result<Part, Fault> {
        match (self.part, token) {
            (Part::Table, _) => {
                if !token.is_events() {
                    self.refuse(Refusal::NotEvents, at);
                }
                return Ok(Part::AfterTable);
            }
            (_, Token::Word(word)) if !self.expects_name() => {
                return self.part_after_word(word, at);
            }
            (Part::Query, Token::Symbol('(')) => return Ok(Part::Clauses),
            (Part::Query, _) => return Err((Refusal::Unreadable, at)),
            (Part::Opened, _) => return Ok(Part::Other),
            (Part::AfterTable, Token::Symbol(',')) => self.refuse(Refusal::Join, at),
            (Part::AfterTable, Token::Symbol('.' | '('))
                if self.previous.is_some_and(Token::is_events) =>
            {
                self.refuse(Refusal::NotEvents, at);
            }
            _ => {}
        }
        Ok(self.part)
    }

    fn part_after_word(&mut self, word: &str, at: usize) -> Result<Part, Fault> {
        let keyword = word.to_ascii_uppercase();
        let is_select = matches!(self.part, Part::Columns | Part::AfterTable | Part::Clauses);
        let is_exclusion = keyword == "EXCEPT" && self.previous == Some(Token::Symbol('*'));
        match (self.part, keyword.as_str()) {
            (Part::Query | Part::Opened, "SELECT") => return Ok(Part::Columns),
            // The name of a common table could be `events`.
            (Part::Query | Part::Opened, "WITH") => {
                self.refuse(Refusal::NotEvents, at);
                return Ok(Part::Other);
            }
            (Part::Query, _) => return Err((Refusal::Unreadable, at)),
            (Part::Opened, _) => return Ok(Part::Other),
            (_, "SELECT") if is_select => return Err((Refusal::Unreadable, at)),
            (_, "FROM") if is_select && !self.follows("DISTINCT") => return Ok(Part::Table),
            (_, "UNION" | "INTERSECT" | "EXCEPT") if !is_exclusion => {
                self.refuse(Refusal::Union, at);
                return Ok(Part::Other);
            }
            (Part::AfterTable, word) if JOIN_WORDS.contains(&word) => {
                self.refuse(Refusal::Join, at);
            }
            (Part::AfterTable, word) if CLAUSES.contains(&word) => return Ok(Part::Clauses),
            (_, "JOIN") => self.refuse(Refusal::Join, at),
            _ => {}
        }
        Ok(self.part)
    }

    /// Whether the next word is a name, also if it is spelled like a keyword.
    fn expects_name(&self) -> bool {
        self.previous == Some(Token::Symbol('.')) || self.follows("AS")
    }

    fn follows(&self, word: &str) -> bool {
        matches!(self.previous, Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    fn open(&mut self, inner: Part) {
        self.outer.push(self.part);
        self.part = inner;
    }

    fn close(&mut self, bracket: char, at: usize) -> Result<(), Fault> {
        let is_pair = (self.part == Part::Array) == (bracket == ']');
        self.end_part(at)?;
        let outer = self.outer.pop().filter(|_| is_pair);
        self.part = outer.ok_or((Refusal::Unreadable, at))?;
        Ok(())
    }

    fn end_part(&mut self, at: usize) -> Result<(), Fault> {
        match self.part {
            Part::Query => return Err((Refusal::Unreadable, at)),
            Part::Columns | Part::Table => self.refuse(Refusal::NotEvents, at),
            _ => {}
        }
        Ok(())
    }

    fn refuse(&mut self, refusal: Refusal, at: usize) {
        let fault = (refusal, at);
        self.fault = Some(self.fault.map_or(fault, |first| first.min(fault)));
    }
}

/// A token of a query. Whitespace and comments are not tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'q> {
    /// A keyword, or a name without quotes.
    Word(&'q str),
    /// A name in double quotes or backquotes, without the quotes.
    QuotedName(&'q str),
    /// A string or a number.
    Literal,
    /// One of [`SYMBOLS`].
    Symbol(char),
}

impl Token<'_> {
    /// Whether this is the name of the table `events`.
    fn is_events(self) -> bool {
        matches!(self, Self::Word("events") | Self::QuotedName("events"))
    }
}

/// Returns the token at the start of `rest`, and what follows, or `None` for an unknown character or a missing closing
/// quote.
fn first_token(rest: &str) -> Option<(Token<'_>, &str)> {
    let first = rest.chars().next()?;
    Some(match first {
        '\'' => (Token::Literal, quoted(rest, first)?.1),
        '"' | '`' => {
            let (name, after) = quoted(rest, first)?;
            (Token::QuotedName(name), after)
        }
        '0'..='9' => (Token::Literal, split_at_first(rest, |c| !is_word(c) && c != '.').1),
        _ if is_word(first) => {
            let (word, after) = split_at_first(rest, |c| !is_word(c));
            (Token::Word(word), after)
        }
        _ if SYMBOLS.contains(first) => (Token::Symbol(first), rest.strip_prefix(first)?),
        _ => return None,
    })
}

/// Whether `c` may be part of a name without quotes, such as `$browser`.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

fn split_at_first(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Returns the text between the quotes at the start of `rest`, and what follows. A backslash escapes the next character,
/// and a doubled quote stands for one.
fn quoted(rest: &str, quote: char) -> Option<(&str, &str)> {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some((rest.get(1..at)?, rest.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests;
