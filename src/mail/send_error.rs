//! The reason why a mail was not sent: for the operator, and for the users that may see the mail's state.

use std::fmt;

use lettre::transport::smtp::Error as Trouble;

use super::mailbox::mask;
use super::mime::to_ascii_address;

/// An error of the SMTP dialogue.
pub(super) enum Failure {
    /// The connection or the sign-in failed.
    Connection(Trouble),
    /// The transaction of a mail failed.
    Mail(Trouble),
}

impl Failure {
    pub(super) fn trouble(&self) -> &Trouble {
        match self {
            Self::Connection(trouble) | Self::Mail(trouble) => trouble,
        }
    }
}

/// The reason why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    /// The server's reply or the connection's error, in one line, for the operator.
    pub(super) line: String,
    /// The reason for the members of the organization that sends the mail, in one line: without addresses, and without
    /// details of the mail server.
    pub(super) reason: String,
    /// Whether the server has received the whole mail but its last reply is missing: it may have sent the mail on.
    pub may_be_delivered: bool,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl SendError {
    pub(super) fn not_delivered(line: impl Into<String>, reason: &str) -> Self {
        Self { line: line.into(), reason: reason.to_owned(), may_be_delivered: false }
    }

    /// Returns the line for the log, with the recipient's address masked.
    pub fn redacted(&self, to: &str) -> String {
        let written = to_ascii_address(to).map(|address| address.to_string());
        let known = written.as_deref().into_iter().chain([to]).filter(|known| !known.is_empty());
        known.fold(self.line.clone(), |line, address| mask(&line, address))
    }
}
