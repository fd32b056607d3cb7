//! A parser, and how it moves over its tokens.

use super::tokens::Token;
use super::{MAX_DEPTH, UNREADABLE};

/// The outcome of reading a part of a query. `Err` is always [`UNREADABLE`].
pub(super) type Read<T = ()> = Result<T, &'static str>;

/// Words that are never the name of a column or a table.
const KEYWORDS: [&str; 28] = [
    "AND",
    "AS",
    "BETWEEN",
    "BY",
    "CASE",
    "ELSE",
    "EXCEPT",
    "FROM",
    "HAVING",
    "ILIKE",
    "IN",
    "INTERSECT",
    "INTO",
    "IS",
    "JOIN",
    "LIKE",
    "NOT",
    "ON",
    "OR",
    "PREWHERE",
    "SELECT",
    "THEN",
    "UNION",
    "USING",
    "WHEN",
    "WHERE",
    "WITH",
    "XOR",
];
/// Words that are not an alias without AS either, because they continue the query.
const CONTINUATIONS: [&str; 24] = [
    "ANTI", "ANY", "ARRAY", "ASOF", "CROSS", "END", "FETCH", "FINAL", "FOR", "FULL", "GLOBAL",
    "GROUP", "INNER", "LATERAL", "LEFT", "LIMIT", "NATURAL", "OFFSET", "ORDER", "QUALIFY", "RIGHT",
    "SAMPLE", "SEMI", "WINDOW",
];

/// A rule that a part of a query breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) detail: &'static str,
    /// The number of tokens from the part to the end of the query.
    pub(super) tokens_left: usize,
}

/// A reader of a query's tokens. The functions skip the part of the query after which they are named.
pub(super) struct Parser<'q> {
    pub(super) tokens: &'q [Token<'q>],
    pub(super) depth: usize,
    /// One entry for each query within the text, outer queries before inner ones.
    pub(super) refusals: Vec<Option<Refusal>>,
}

impl<'q> Parser<'q> {
    /// Returns a refusal of the part that comes next.
    pub(super) const fn refuse(&self, detail: &'static str) -> Refusal {
        Refusal { detail, tokens_left: self.tokens.len() }
    }

    pub(super) fn peek_symbol(&self, symbol: &str) -> bool {
        matches!(self.tokens.first(), Some(Token::Symbol(found)) if *found == symbol)
    }

    pub(super) fn word_at(&self, at: usize) -> Option<&'q str> {
        match self.tokens.get(at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub(super) fn peek_any(&self, words: &[&str]) -> bool {
        self.word_at(0).is_some_and(|word| is_any(word, words))
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.tokens = self.tokens.get(count..).unwrap_or_default();
    }

    pub(super) fn eat_symbol(&mut self, symbol: &str) -> bool {
        let found = self.peek_symbol(symbol);
        if found {
            self.skip(1);
        }
        found
    }

    pub(super) fn eat_any(&mut self, words: &[&str]) -> bool {
        let found = self.peek_any(words);
        if found {
            self.skip(1);
        }
        found
    }

    /// Skips these words if they all come next.
    pub(super) fn eat(&mut self, words: &str) -> bool {
        let mut count = 0;
        for word in words.split(' ') {
            if !self.word_at(count).is_some_and(|found| found.eq_ignore_ascii_case(word)) {
                return false;
            }
            count += 1;
        }
        self.skip(count);
        true
    }

    pub(super) fn expect(&mut self, words: &str) -> Read {
        require(self.eat(words))
    }

    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Read {
        require(self.eat_symbol(symbol))
    }

    /// Whether a name comes next: one in quotes, or a word that is not reserved.
    pub(super) fn peek_name(&self) -> bool {
        match self.tokens.first() {
            Some(Token::Word(word)) => !is_keyword(word),
            Some(Token::QuotedName(_)) => true,
            _ => false,
        }
    }

    /// Whether an alias without AS comes next.
    pub(super) fn peek_alias(&self) -> bool {
        self.peek_name() && !self.peek_any(&CONTINUATIONS)
    }

    /// Reads any name or word, and returns it without its quotes.
    pub(super) fn name(&mut self) -> Read<&'q str> {
        let name = match self.tokens.first() {
            Some(Token::Word(word)) => *word,
            Some(Token::QuotedName(name)) => name.as_str(),
            _ => return Err(UNREADABLE),
        };
        self.skip(1);
        Ok(name)
    }

    /// Reads a part one level deeper.
    pub(super) fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        require(self.depth < MAX_DEPTH)?;
        self.depth += 1;
        let read = part(self)?;
        self.depth -= 1;
        Ok(read)
    }

    pub(super) fn in_parentheses<T>(&mut self, part: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.expect_symbol("(")?;
        let read = self.nested(part)?;
        self.expect_symbol(")")?;
        Ok(read)
    }

    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read {
        item(self)?;
        while self.eat_symbol(",") {
            item(self)?;
        }
        Ok(())
    }
}

/// Whether `word` is never the name of a column or a table.
pub(super) fn is_keyword(word: &str) -> bool {
    is_any(word, &KEYWORDS)
}

/// Whether `word` continues a query and is therefore no alias without AS.
pub(super) fn is_continuation(word: &str) -> bool {
    is_any(word, &CONTINUATIONS)
}

pub(super) fn is_any(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

pub(super) fn require(holds: bool) -> Read {
    if holds { Ok(()) } else { Err(UNREADABLE) }
}
