//! Tests of what only PostgreSQL does.

mod faults;
#[expect(dead_code, reason = "other tests use the other methods")]
#[path = "../../../../../tests/support/line.rs"]
mod line;
mod refusals;
mod sessions;
mod tls;

use super::super::tests::{all, found, new_name, open, put, removal, since, support, taken, turn};
use super::super::{Commit, CommitOutcome, Fault};
use super::link::ANSWER;
use super::*;
use crate::store::values::position::{OriginRow, Position};

use support::{Schema, Server};

/// A database with a workspace of one row, and the position of its first commit.
struct Database {
    schema: Schema,
    origin: Postgres,
    first: Position,
}

impl Database {
    fn new() -> Self {
        let schema = Schema::new();
        let origin = open(&schema.url(), "node a");
        let first = found(&origin, &[put("a", "1")]);
        Self { schema, origin, first }
    }
}

/// Asserts that an answer is a refusal whose text has these parts, and returns the text.
#[track_caller]
fn assert_refused<T>(outcome: Result<T, Fault>, parts: &[&str]) -> String {
    let why = match outcome {
        Err(Fault::Refused(why)) => why,
        Err(fault) => panic!("not refused: {fault:?}"),
        Ok(_) => panic!("not refused"),
    };
    for part in parts {
        assert!(why.contains(part), "{part}: {why}");
    }
    why
}
