//! Writing to stdout and stderr, which may be full or closed.

use std::io::{self, ErrorKind, Write};

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
