//! The reason why a mail was not sent: for the operator, and for the users that may see the mail's state.

use std::error::Error;
use std::fmt;

use lettre::transport::smtp::Error as Trouble;
use lettre::transport::smtp::response::Code;

use super::mailbox::mask;
use super::mime::to_ascii_address;
use super::wire::ConnectError;

/// An error of the SMTP dialogue.
pub(super) enum Failure {
    /// The connection or the sign-in failed.
    Connection(ConnectError),
    /// The transaction of a mail failed.
    Mail(Trouble),
}

impl Failure {
    /// Returns the code of the server's reply, if it replied.
    pub(super) fn status(&self) -> Option<Code> {
        match self {
            Self::Connection(ConnectError::Smtp(trouble)) | Self::Mail(trouble) => trouble.status(),
            Self::Connection(ConnectError::Network(_) | ConnectError::NoStartTls) => None,
        }
    }

    /// Returns the innermost cause: the server's reply, or the error of the network or the certificate.
    pub(super) fn text(&self) -> String {
        let mut deepest: &dyn Error = match self {
            Self::Connection(ConnectError::Smtp(trouble)) | Self::Mail(trouble) => trouble,
            Self::Connection(ConnectError::Network(error)) => error,
            Self::Connection(ConnectError::NoStartTls) => {
                return "STARTTLS is not supported on this server".to_owned();
            }
        };
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        deepest.to_string()
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
