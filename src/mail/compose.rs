//! The text of a mail, which is composed when the mail is sent.

use crate::error::Result;
use crate::store::{Snapshot, WriteTx};
use crate::time::Timestamp;

use super::outbox::{Notification, OutboxMessage};

/// The reason of an attempt that failed before the mail server was involved. The cause is for the operator only.
pub(super) const NOT_COMPOSED: &str = "The mail could not be composed.";

/// The text of a mail. Any text is allowed: the subject is cleaned before it becomes a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailContent {
    /// The subject, in one line.
    pub subject: String,
    /// The body as plain text.
    pub text: String,
    /// The same body as HTML.
    pub html: String,
}

/// What became of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The mail server accepted the mail.
    Sent,
    /// An attempt failed, for this reason. Another one follows.
    Failed(String),
    /// No attempt follows, for this reason.
    GivenUp(&'static str),
}

/// Composes mails, and learns what became of them. The module of a mail's subject matter implements it.
pub trait ComposeMail: Send + Sync + 'static {
    /// Composes the mail of an outbox message.
    ///
    /// # Errors
    /// 503 if the file cannot be read at the moment. Any other error counts as a failed attempt.
    fn compose(
        &self,
        tx: &Snapshot,
        outbox_message: &OutboxMessage,
        now: Timestamp,
    ) -> Result<Composed>;

    /// Stores what became of a mail, in the transaction that updates the outbox. May run twice. `message` is the
    /// outbox message before the attempt. Mails that were cancelled during the attempt are not reported.
    fn record(
        &self,
        tx: &mut WriteTx<'_>,
        message: &OutboxMessage,
        delivery: &Delivery,
        now: Timestamp,
    ) -> Result<()>;
}

/// The result of composing an outbox message.
#[derive(Debug, Clone, PartialEq)]
pub enum Composed {
    /// Send this mail.
    Content(MailContent),
    /// Replace the message with one for each of these: it was an announcement to several recipients.
    Replace(Vec<Notification>),
    /// Send nothing: the message is obsolete.
    Obsolete,
}

/// Reduces a text to one line: white space, control characters and direction marks become single spaces.
pub fn to_single_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() || is_layout(c) { ' ' } else { c };
    let line: String = text.chars().map(plain).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a character separates lines or paragraphs, or marks a direction.
fn is_layout(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}
