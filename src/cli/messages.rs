//! The messages of the control socket, one line of JSON each.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::operator::Operation;
use crate::store::Stage;

/// How long the other end of a stream may take to read or write one piece.
pub(super) const STREAM_TIMEOUT: Duration = Duration::from_secs(30);

/// The error of a command whose server stopped before its last reply.
pub(super) const STOPPED: &str =
    "the server stopped before it answered; check whether the command took effect";

/// The request of a command.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// Perform the operation and reply with its result.
    Perform(Operation),
    /// Reply with the size of a copy of the data, and send the copy after that.
    Copy,
    /// Import the organization in the export that follows. The command sends it after a first reply of progress.
    ImportOrganization {
        /// Whether unverified accounts are accepted.
        existing: bool,
    },
    /// Reply whether the service accepts writes.
    Ready,
    /// Set the log filter.
    Log(String),
}

/// A reply of the server. All but the last one are progress.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The progress of the operation.
    Progress(Stage),
    Done(Value),
    Refused(String),
}
