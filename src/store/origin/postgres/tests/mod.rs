//! Tests against a real server.

mod commits;

#[expect(dead_code, reason = "other tests use the other helpers")]
#[path = "../../../../../tests/support/postgres.rs"]
mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::Row;
use super::*;
use crate::error::Result;
use crate::store::schema::Table;

use support::Schema;

/// The node of most tests.
const NODE: &str = "node a";

/// A database with a workspace, and what a node has of it.
struct Database {
    schema: Schema,
    origin: Postgres,
}

impl Database {
    /// Creates a schema with nothing in it.
    fn empty() -> Self {
        let schema = Schema::new();
        let origin = open(&schema.url());
        Self { schema, origin }
    }

    /// Founds a workspace with these rows. Returns the position of its first commit, too.
    fn with(rows: &[Row]) -> (Self, Position) {
        let database = Self::empty();
        let founded = database.origin.found(new_name(), &mut rows.iter().cloned().map(Ok));
        let position = founded.expect("an answer").expect("a new workspace");
        (database, position)
    }

    /// Returns another node of the same workspace.
    fn other_node(&self) -> Postgres {
        open(&self.schema.url())
    }
}

/// Returns the database at `url`.
fn open(url: &str) -> Postgres {
    Postgres::new(&url.parse().expect("a URL"), None, NODE).expect("a valid URL")
}

/// Returns a name that no other commit has.
fn new_name() -> Uuid {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u64_pair(u64::from(std::process::id()), DRAWN.fetch_add(1, Ordering::Relaxed))
}

/// Returns a row with this value.
fn put(key: &str, value: &str) -> Row {
    Row { table: Table::Users, key: key.into(), sealed: Some(value.into()) }
}

/// Returns the removal of a row.
fn removal(key: &str) -> Row {
    Row { table: Table::Users, key: key.into(), sealed: None }
}

/// Returns what changed after `known`, ordered by key, and the head.
fn since(origin: &Postgres, known: Position) -> Result<(Vec<Row>, Position), Fault> {
    let mut rows = Vec::new();
    let head = origin.since(known, &mut |row| {
        rows.push(row);
        Ok(())
    })?;
    rows.sort_by(|a: &Row, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
    Ok((rows, head))
}

/// Commits these rows under a new name.
fn commit(origin: &Postgres, from: Position, rows: &[Row]) -> Outcome {
    let commit = Commit { from, name: new_name(), rows };
    origin.commit(&commit).expect("an answer")
}

/// Commits these rows, and returns the position of the commit.
fn taken(origin: &Postgres, from: Position, rows: &[Row]) -> Position {
    match commit(origin, from, rows) {
        Outcome::Taken(position) => position,
        Outcome::Overtaken => panic!("overtaken"),
    }
}
