//! What a letter says, made when it is sent.

use crate::error::Result;
use crate::store::Snapshot;
use crate::time::Timestamp;

use super::outbox::{About, Letter};

/// What a mail says. Any text will do: what would break a header is taken out of the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it is about, in a line.
    pub subject: String,
    /// What it says, for those who read text.
    pub text: String,
    /// The same as HTML.
    pub html: String,
}

/// Composes letters. Whoever knows what a letter is about implements it.
pub trait Compose: Send + Sync + 'static {
    /// What becomes of `letter`.
    ///
    /// # Errors
    /// 503 when the file cannot be read for the moment; anything else counts as a failed attempt.
    fn compose(&self, tx: &Snapshot, letter: &Letter, now: Timestamp) -> Result<Composed>;
}

/// What becomes of a letter that is to be sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Composed {
    /// It says this.
    Message(Message),
    /// A letter about each of these takes its place: it was an announcement to several.
    Letters(Vec<About>),
    /// Nothing: what it tells is no longer so.
    Moot,
}

/// A text in one line: white space, control characters and marks of direction become single spaces.
pub fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() || is_layout(c) { ' ' } else { c };
    let line: String = text.chars().map(plain).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character lays text out: separators of lines and paragraphs, marks of direction.
fn is_layout(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}
