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
