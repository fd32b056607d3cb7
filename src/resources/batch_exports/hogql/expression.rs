//! Reads expressions.

use super::UNREADABLE;
use super::cursor::{Parser, Read, is_any, is_continuation, is_keyword, require};
use super::tokens::Token;

const SYMBOL_OPERATORS: [&str; 20] = [
    "=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%", "||", "^", "&",
    "|", "~", "!~",
];
const WORD_OPERATORS: [&str; 12] = [
    "AND", "OR", "XOR", "DIV", "MOD", "IN", "LIKE", "ILIKE", "BETWEEN", "REGEXP", "RLIKE", "ESCAPE",
];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Read {
        self.nested(|parser| {
            parser.operand()?;
            while parser.operator()? {
                parser.operand()?;
            }
            if parser.eat_symbol("->") { parser.expression() } else { Ok(()) }
        })
    }

    /// Reads the operator before the next operand, if there is one.
    fn operator(&mut self) -> Read<bool> {
        while self.eat("IS") {
            self.eat("NOT");
            if self.eat("DISTINCT FROM") {
                return Ok(true);
            }
            require(self.eat_any(&["NULL", "TRUE", "FALSE", "UNKNOWN"]))?;
        }
        if self.eat("AT TIME ZONE") || self.eat("GLOBAL IN") || self.eat("GLOBAL NOT IN") {
            return Ok(true);
        }
        if self.eat("NOT") {
            require(self.eat_any(&["IN", "LIKE", "ILIKE", "BETWEEN", "REGEXP", "RLIKE"]))?;
            return Ok(true);
        }
        if self.eat_any(&WORD_OPERATORS) {
            return Ok(true);
        }
        let is_operator = matches!(self.tokens.first(), Some(Token::Symbol(symbol)) if SYMBOL_OPERATORS.contains(symbol));
        if is_operator {
            self.skip(1);
        }
        Ok(is_operator)
    }

    fn operand(&mut self) -> Read {
        let is_callable =
            matches!(self.tokens.first(), Some(Token::Word(_) | Token::QuotedName(_)));
        match self.tokens.first() {
            Some(Token::Text | Token::Number | Token::QuotedName(_)) => self.skip(1),
            Some(Token::Symbol("-" | "+" | "~")) => {
                self.skip(1);
                return self.nested(Self::operand);
            }
            Some(Token::Symbol("(")) => self.in_parentheses(|parser| {
                if parser.peek_query() { parser.query() } else { parser.list(Self::expression) }
            })?,
            Some(Token::Symbol("[")) => self.array()?,
            Some(Token::Symbol(".")) if matches!(self.tokens.get(1), Some(Token::Number)) => {
                self.skip(2);
            }
            Some(Token::Word(_)) if self.eat("NOT") => return self.nested(Self::operand),
            Some(Token::Word(_)) if self.eat("CASE") => self.nested(Self::case)?,
            Some(Token::Word(word)) if is_any(word, &["INTERVAL"]) && self.is_before_operand() => {
                self.skip(1);
                self.nested(Self::operand)?;
                if self.peek_unit() {
                    self.skip(1);
                }
                return Ok(());
            }
            Some(Token::Word(_)) => {
                require(self.peek_name())?;
                let is_typed = self.peek_any(&["DATE", "TIMESTAMP"])
                    && matches!(self.tokens.get(1), Some(Token::Text));
                self.skip(if is_typed { 2 } else { 1 });
            }
            _ => return Err(UNREADABLE),
        }
        self.suffixes(is_callable)
    }

    /// Whether the word that comes next is followed by an operand.
    fn is_before_operand(&self) -> bool {
        match self.tokens.get(1) {
            Some(Token::Symbol(symbol)) => ["(", "[", "-"].contains(symbol),
            Some(Token::Word(word)) => {
                is_any(word, &["CASE", "NOT"]) || !is_keyword(word) && !is_continuation(word)
            }
            found => found.is_some(),
        }
    }

    fn peek_unit(&self) -> bool {
        self.word_at(0).is_some_and(|word| {
            let word = word.to_ascii_uppercase();
            let unit = word.strip_suffix('S').unwrap_or(&word);
            is_any(unit, &["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"])
        })
    }

    /// Reads what follows an operand: `.name`, `(arguments)`, `[index]`, `::Type`.
    fn suffixes(&mut self, mut is_callable: bool) -> Read {
        loop {
            if self.eat_symbol(".") {
                if !self.eat_symbol("*") {
                    self.name()?;
                }
            } else if is_callable && self.peek_symbol("(") {
                self.arguments()?;
                self.after_call()?;
            } else if self.eat_symbol("[") {
                self.nested(Self::expression)?;
                self.expect_symbol("]")?;
            } else if self.eat_symbol("::") {
                self.data_type()?;
            } else {
                return Ok(());
            }
            is_callable = true;
        }
    }

    fn array(&mut self) -> Read {
        self.expect_symbol("[")?;
        if !self.peek_symbol("]") {
            self.nested(|parser| parser.list(Self::expression))?;
        }
        self.expect_symbol("]")
    }

    pub(super) fn arguments(&mut self) -> Read {
        self.in_parentheses(|parser| {
            if parser.peek_symbol(")") {
                return Ok(());
            }
            if parser.peek_query() {
                return parser.query();
            }
            parser.eat_any(&["DISTINCT", "ALL"]);
            parser.list(Self::argument)?;
            parser.order_by()
        })
    }

    fn argument(&mut self) -> Read {
        if self.eat_symbol("*") {
            return Ok(());
        }
        if self.peek_any(&["BOTH", "LEADING", "TRAILING"])
            && matches!(self.tokens.get(1), Some(Token::Text))
        {
            self.skip(1);
        }
        self.expression()?;
        if self.eat("AS") {
            return self.data_type();
        }
        while self.eat_any(&["FROM", "FOR", "PLACING", "TO", "USING"]) {
            self.expression()?;
        }
        Ok(())
    }

    /// Reads what may follow the arguments of an aggregate or window function.
    fn after_call(&mut self) -> Read {
        if self.eat_any(&["IGNORE", "RESPECT"]) {
            self.expect("NULLS")?;
        }
        if matches!(self.tokens.get(1), Some(Token::Symbol("("))) && self.eat("FILTER") {
            self.in_parentheses(|parser| {
                parser.expect("WHERE")?;
                parser.expression()
            })?;
        }
        if self.eat("OVER") {
            if self.peek_symbol("(") {
                self.in_parentheses(Self::window)?;
            } else {
                self.name()?;
            }
        }
        Ok(())
    }

    pub(super) fn window(&mut self) -> Read {
        if self.eat("PARTITION BY") {
            self.list(Self::expression)?;
        }
        self.order_by()?;
        if self.eat_any(&["ROWS", "RANGE", "GROUPS"]) {
            if self.eat("BETWEEN") {
                self.frame_bound()?;
                self.expect("AND")?;
            }
            self.frame_bound()?;
        }
        Ok(())
    }

    fn frame_bound(&mut self) -> Read {
        if self.eat("CURRENT ROW") {
            return Ok(());
        }
        if !self.eat("UNBOUNDED") {
            self.operand()?;
        }
        require(self.eat_any(&["PRECEDING", "FOLLOWING"]))
    }

    fn case(&mut self) -> Read {
        if !self.peek_any(&["WHEN"]) {
            self.expression()?;
        }
        self.expect("WHEN")?;
        loop {
            self.expression()?;
            self.expect("THEN")?;
            self.expression()?;
            if !self.eat("WHEN") {
                break;
            }
        }
        if self.eat("ELSE") {
            self.expression()?;
        }
        self.expect("END")
    }

    /// Reads a type such as `Nullable(DateTime64(3, 'UTC'))`, or a tuple's element with its name, `id UInt64`.
    fn data_type(&mut self) -> Read {
        self.name()?;
        if self.peek_name() {
            self.name()?;
        }
        if self.peek_symbol("(") {
            self.in_parentheses(|parser| {
                parser.list(|parser| match parser.tokens.first() {
                    Some(Token::Number | Token::Text) => parser.expression(),
                    _ => parser.data_type(),
                })
            })?;
        }
        Ok(())
    }
}
