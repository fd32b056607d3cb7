//! Splits a query into tokens.

/// A token of a query. Whitespace and comments are not tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'q> {
    /// A keyword, or a name without quotes.
    Word(&'q str),
    /// A name in double quotes or backquotes, without the quotes.
    QuotedName(String),
    /// A string in single quotes.
    Text,
    Number,
    /// One of [`SYMBOLS`].
    Symbol(&'static str),
}

/// Operators and punctuation. A symbol that starts with another symbol comes first.
const SYMBOLS: [&str; 28] = [
    "<=>", "<=", ">=", "<>", "!=", "==", "||", "::", "->", "!~", "=", "<", ">", "+", "-", "*", "/",
    "%", "(", ")", "[", "]", ",", ".", "^", "&", "|", "~",
];

/// The tokens of a query, and for each the byte at which it begins.
#[derive(Default)]
pub(super) struct Tokens<'q> {
    pub(super) tokens: Vec<Token<'q>>,
    pub(super) starts: Vec<usize>,
}

/// Returns the tokens of `query`.
///
/// # Errors
/// The byte of an unknown symbol, or of an unterminated string or comment.
pub(super) fn tokenize(query: &str) -> Result<Tokens<'_>, usize> {
    let mut found = Tokens::default();
    let mut rest = query.trim_start();
    while !rest.is_empty() {
        let start = query.len() - rest.len();
        if rest.starts_with("--") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").ok_or(start)?.1;
        } else {
            let (token, after) = first_token(rest).ok_or(start)?;
            found.tokens.push(token);
            found.starts.push(start);
            rest = after;
        }
        rest = rest.trim_start();
    }
    Ok(found)
}

/// Returns the token at the start of `rest`, and what follows.
fn first_token(rest: &str) -> Option<(Token<'_>, &str)> {
    let first = rest.chars().next()?;
    Some(match first {
        '\'' => (Token::Text, quoted(rest, '\'')?.1),
        '"' | '`' => {
            let (name, after) = quoted(rest, first)?;
            (Token::QuotedName(name), after)
        }
        '0'..='9' => (Token::Number, after_number(rest)),
        _ if is_word(first) => {
            let (word, after) = split_at_first(rest, |c| !is_word(c));
            (Token::Word(word), after)
        }
        _ => {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol))?;
            (Token::Symbol(symbol), rest.strip_prefix(symbol)?)
        }
    })
}

/// Whether `c` may be part of a name without quotes, such as `properties.$browser`.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

fn split_at_first(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Returns the text between the quotes at the start of `rest`, and what follows. A doubled quote stands for one. In a
/// string, unlike in a name, a backslash escapes the next character.
fn quoted(rest: &str, quote: char) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '\'' {
            text.push(chars.next()?.1);
        } else if c != quote {
            text.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            text.push(quote);
        } else {
            return Some((text, rest.get(at + quote.len_utf8()..)?));
        }
    }
    None
}

/// Returns what follows the number at the start of `rest`: `10`, `0x1f`, `1.5`, `1e-3`.
fn after_number(rest: &str) -> &str {
    let digits = |text| split_at_first(text, |c| !char::is_ascii_digit(&c)).1;
    if let Some(hex) = rest.strip_prefix("0x") {
        return split_at_first(hex, |c| !c.is_ascii_hexdigit()).1;
    }
    let mut rest = digits(rest);
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = digits(fraction);
    }
    let exponent = rest.strip_prefix(['e', 'E']);
    let exponent = exponent.map(|text| text.strip_prefix(['+', '-']).unwrap_or(text));
    match exponent {
        Some(text) if text.starts_with(|c: char| c.is_ascii_digit()) => digits(text),
        _ => rest,
    }
}
