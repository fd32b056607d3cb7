//! Why a command fails, and how it says so on streams that may be full or closed.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use crate::base::error::Error;
use crate::config::INVALID_CONFIGURATION;
use crate::store::{OpenError, mask_database_addresses};

/// The exit code for an invalid command line or configuration: a retry would fail too.
const EXIT_USAGE: u8 = 2;

/// The error of a command, as one line.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line is not valid, or asks for help.
    Args(clap::Error),
    /// The data cannot be opened, or an operation is refused.
    Data(OpenError),
    /// The command line or the configuration is invalid.
    Usage(String),
    Other(String),
}

impl Failure {
    /// Returns the error of an output that is not complete.
    pub(super) fn unwritten(error: &io::Error) -> Self {
        Self::Other(format!("the output could not be written to stdout: {error}"))
    }

    /// Writes the error to stderr, or the help to stdout, and returns the exit code.
    pub(super) fn report(&self) -> ExitCode {
        if let Self::Args(error) = self {
            return show_usage(error);
        }
        complain(&self.to_string());
        if self.is_of_configuration() { ExitCode::from(EXIT_USAGE) } else { ExitCode::FAILURE }
    }

    /// Whether a retry would fail until somebody changes the command line or the configuration.
    pub(super) fn is_of_configuration(&self) -> bool {
        match self {
            Self::Args(_) | Self::Usage(_) | Self::Data(OpenError::DatabaseSetting { .. }) => true,
            Self::Data(OpenError::Refused(error)) => error.code() == INVALID_CONFIGURATION,
            Self::Data(_) | Self::Other(_) => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Args(error) => error.fmt(f),
            Self::Data(error) => error.fmt(f),
            Self::Usage(text) | Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Args(error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::Data(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Data(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// Prints what is wrong with a command line, or the help or the version that it asks for. Returns the exit code. The message
/// may repeat words of the command line and values of variables, and never shows the address of a database among them.
fn show_usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let text = error.to_string();
        let given = std::env::args_os().chain(std::env::vars_os().map(|(_, value)| value));
        let given = given.map(|word| word.to_string_lossy().into_owned());
        let masked = mask_database_addresses(&text, given);
        if masked == text {
            let _ = error.print();
        } else {
            write_err(&masked);
        }
        return ExitCode::from(EXIT_USAGE);
    }
    let printed = error.print();
    match unless_unread(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::unwritten(&error).report(),
    }
}

/// Makes it no error if the reader of a pipe has left.
pub(super) fn unless_unread(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes to stdout.
pub(super) fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// Writes a line to stderr. If that is not possible, only the exit code shows the failure.
pub(super) fn complain(text: &str) {
    write_err(&format!("steward: {text}\n"));
}

/// Writes to stderr, if that is possible.
pub(super) fn write_err(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
