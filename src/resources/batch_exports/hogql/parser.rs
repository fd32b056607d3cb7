//! Reads a query by recursive descent, without backtracking: every token is read once.

use super::cursor::{Parser, Read, Refusal, require};
use super::tokens::Token;
use super::{JOIN, NOT_EVENTS, UNION, UNREADABLE};

/// The first words of statements other than SELECT that are refused as such.
const OTHER_STATEMENTS: [&str; 6] = ["VALUES", "INSERT", "UPDATE", "DELETE", "MERGE", "TABLE"];
const SET_OPERATIONS: [&str; 4] = ["UNION", "INTERSECT", "EXCEPT", "MINUS"];
const JOIN_WORDS: [&str; 14] = [
    "NATURAL", "GLOBAL", "ANY", "ALL", "ASOF", "ANTI", "SEMI", "INNER", "CROSS", "LEFT", "RIGHT",
    "FULL", "OUTER", "ARRAY",
];

impl<'q> Parser<'q> {
    /// Returns the refusal of the outermost query that breaks a rule.
    pub(super) fn check(tokens: &'q [Token<'q>]) -> Result<(), Refusal> {
        let mut parser = Self { tokens, depth: 0, refusals: Vec::new() };
        if parser.query().is_err() || !parser.tokens.is_empty() {
            return Err(parser.refuse(UNREADABLE));
        }
        parser.refusals.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// Whether the text in parentheses that was just opened is a query.
    pub(super) fn peek_query(&self) -> bool {
        self.peek_any(&["SELECT", "WITH"]) || self.peek_any(&OTHER_STATEMENTS)
    }

    pub(super) fn query(&mut self) -> Read {
        let number = self.refusals.len();
        self.refusals.push(None);
        // The name of a common table could be `events`.
        let with = self.peek_any(&["WITH"]).then(|| self.refuse(NOT_EVENTS));
        if self.eat("WITH") {
            self.eat("RECURSIVE");
            self.list(Self::common_table)?;
        }
        let refusal = self.body()?;
        let mut union = None;
        while self.peek_any(&SET_OPERATIONS) {
            union = union.or(Some(self.refuse(UNION)));
            self.skip(1);
            self.eat_any(&["ALL", "DISTINCT"]);
            self.body()?;
        }
        self.order_by()?;
        self.limits()?;
        if let Some(entry) = self.refusals.get_mut(number) {
            *entry = with.or(union).or(refusal);
        }
        Ok(())
    }

    fn common_table(&mut self) -> Read {
        self.name()?;
        self.expect("AS")?;
        self.in_parentheses(Self::query)
    }

    /// Reads one of the selects that a set operation combines, or the only one.
    fn body(&mut self) -> Read<Option<Refusal>> {
        let other_statement = self.refuse(NOT_EVENTS);
        if self.peek_symbol("(") {
            self.in_parentheses(Self::query)?;
            Ok(None)
        } else if self.eat("SELECT") {
            self.select()
        } else {
            require(self.eat_any(&OTHER_STATEMENTS))?;
            self.skip_statement()?;
            Ok(Some(other_statement))
        }
    }

    /// Skips at least one token, up to the end or the next unmatched closing parenthesis.
    fn skip_statement(&mut self) -> Read {
        require(!self.tokens.is_empty() && !self.peek_symbol(")"))?;
        while !self.tokens.is_empty() && !self.peek_symbol(")") {
            if self.peek_symbol("(") {
                self.in_parentheses(|parser| {
                    if parser.peek_symbol(")") { Ok(()) } else { parser.skip_statement() }
                })?;
            } else {
                self.skip(1);
            }
        }
        Ok(())
    }

    fn select(&mut self) -> Read<Option<Refusal>> {
        self.eat_any(&["DISTINCT", "ALL"]);
        self.list(Self::column)?;
        let refusal = if self.eat("FROM") { self.from()? } else { Some(self.refuse(NOT_EVENTS)) };
        for clause in ["PREWHERE", "WHERE"] {
            if self.eat(clause) {
                self.expression()?;
            }
        }
        if self.eat("GROUP BY") {
            self.group_by()?;
        }
        if self.eat("HAVING") {
            self.expression()?;
        }
        if self.eat("WINDOW") {
            self.list(|parser| {
                parser.name()?;
                parser.expect("AS")?;
                parser.in_parentheses(Self::window)
            })?;
        }
        if self.eat("QUALIFY") {
            self.expression()?;
        }
        Ok(refusal)
    }

    fn column(&mut self) -> Read {
        if self.eat_symbol("*") {
            let is_list = matches!(self.tokens.get(1), Some(Token::Symbol("(")));
            if is_list && self.eat_any(&["EXCEPT", "EXCLUDE"]) {
                self.in_parentheses(|parser| parser.list(Self::name))?;
            } else if !is_list && self.eat("EXCEPT") {
                self.name()?;
            }
            return Ok(());
        }
        self.expression()?;
        self.alias()
    }

    /// Reads an alias, if there is one.
    fn alias(&mut self) -> Read {
        let has_as = self.eat("AS");
        if has_as && matches!(self.tokens.first(), Some(Token::Text)) {
            self.skip(1);
        } else if has_as || self.peek_alias() {
            self.name()?;
        }
        Ok(())
    }

    fn from(&mut self) -> Read<Option<Refusal>> {
        let refusal = self.table()?;
        let mut join = None;
        loop {
            let here = self.refuse(JOIN);
            if !self.eat_symbol(",") && !self.join()? {
                return Ok(join.or(refusal));
            }
            self.table()?;
            if self.eat("ON") {
                self.expression()?;
            } else if self.eat("USING") {
                self.in_parentheses(|parser| parser.list(Self::name))?;
            }
            join = join.or(Some(here));
        }
    }

    /// Reads the words of a join, if they come next.
    fn join(&mut self) -> Read<bool> {
        let mut found = false;
        while self.eat_any(&JOIN_WORDS) {
            found = true;
        }
        if found {
            self.expect("JOIN")?;
        }
        Ok(found || self.eat("JOIN"))
    }

    fn table(&mut self) -> Read<Option<Refusal>> {
        let not_events = self.refuse(NOT_EVENTS);
        let refusal = if self.peek_symbol("(") {
            self.in_parentheses(|parser| {
                if parser.peek_query() {
                    parser.query()?;
                    return Ok(Some(not_events));
                }
                // A table in parentheses needs a join.
                let refusal = parser.from()?;
                require(refusal.is_some())?;
                Ok(refusal)
            })?
        } else {
            require(self.peek_name())?;
            let mut is_events = self.name()? == "events";
            while self.eat_symbol(".") {
                self.name()?;
                is_events = false;
            }
            if self.peek_symbol("(") {
                self.arguments()?;
                is_events = false;
            }
            (!is_events).then_some(not_events)
        };
        self.alias()?;
        self.eat("FINAL");
        if self.eat("SAMPLE") {
            self.expression()?;
            if self.eat("OFFSET") {
                self.expression()?;
            }
        }
        Ok(refusal)
    }

    fn group_by(&mut self) -> Read {
        self.list(|parser| {
            if parser.eat("GROUPING SETS") {
                parser.in_parentheses(|parser| parser.list(Self::arguments))
            } else {
                parser.expression()
            }
        })?;
        if self.eat("WITH") {
            require(self.eat_any(&["TOTALS", "ROLLUP", "CUBE"]))?;
        }
        Ok(())
    }

    pub(super) fn order_by(&mut self) -> Read {
        if self.eat("ORDER BY") {
            self.list(|parser| {
                parser.expression()?;
                parser.eat_any(&["ASC", "DESC"]);
                if parser.eat("NULLS") {
                    require(parser.eat_any(&["FIRST", "LAST"]))?;
                }
                if parser.eat("COLLATE") {
                    require(matches!(parser.tokens.first(), Some(Token::Text)))?;
                    parser.skip(1);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Reads LIMIT and OFFSET, which may come twice if the first is a LIMIT BY.
    fn limits(&mut self) -> Read {
        let has_limit = self.eat("LIMIT");
        if has_limit {
            self.list(Self::expression)?;
        }
        if self.eat("OFFSET") {
            self.expression()?;
        }
        if has_limit && self.eat("BY") {
            self.list(Self::expression)?;
            return self.limits();
        }
        Ok(())
    }
}
