//! What every origin promises, tested on PostgreSQL and on the origin in memory.

mod contract;
#[expect(dead_code, reason = "other tests use the other functions")]
#[path = "../../../../tests/support/postgres.rs"]
pub(super) mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::wait::TEST_TIMEOUT;

use super::postgres::Postgres;
use super::scripted::{Event, Scripted};
use super::*;

use support::Schema;

/// A database that two nodes share.
pub(super) struct Nodes {
    pub a: Arc<dyn Origin>,
    pub b: Arc<dyn Origin>,
    /// Drops the tables at the end. `None` for the origin in memory.
    schema: Option<Schema>,
    memory: Option<Arc<Scripted>>,
}

impl Nodes {
    pub(super) fn on_postgres() -> Self {
        let schema = Schema::new();
        let a = Arc::new(open(&schema.url(), "node a"));
        let b = Arc::new(open(&schema.url(), "node b"));
        Self { a, b, schema: Some(schema), memory: None }
    }

    fn scripted() -> Self {
        let a = Arc::new(Scripted::default());
        Self { a: a.clone(), b: a.clone(), schema: None, memory: Some(a) }
    }

    /// Deletes the names of all commits behind the back of the nodes.
    fn forget_commits(&self) {
        if let Some(schema) = &self.schema {
            schema.execute("DELETE FROM steward_commits");
        }
        if let Some(memory) = &self.memory {
            memory.forget_commits();
        }
    }
}

/// Returns the database at `url`, for the node of this name. A busy server has time to accept its connections.
pub(super) fn open(url: &str, node: &str) -> Postgres {
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}connect_timeout={}", TEST_TIMEOUT.as_secs());
    Postgres::new(&url.parse().expect("a URL"), None, node).expect("a valid URL")
}

/// Returns a name that no other commit has.
pub(super) fn new_name() -> Uuid {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u64_pair(u64::from(std::process::id()), DRAWN.fetch_add(1, Ordering::Relaxed))
}

/// Returns a row with this value.
pub(super) fn put(key: &str, value: &str) -> OriginRow {
    OriginRow { table: Table::Users, key: key.into(), sealed: Some(value.into()) }
}

/// Returns the removal of a row.
pub(super) fn removal(key: &str) -> OriginRow {
    OriginRow { table: Table::Users, key: key.into(), sealed: None }
}

/// Founds a workspace with these rows.
pub(super) fn found(origin: &dyn Origin, rows: &[OriginRow]) -> Position {
    let founded = origin.found_workspace(new_name(), &mut rows.iter().cloned().map(Ok));
    founded.expect("an answer").expect("a new workspace")
}

/// Returns what changed after `known`, ordered by table and key, and the head.
pub(super) fn since(
    origin: &dyn Origin,
    known: Position,
) -> Result<(Vec<OriginRow>, Position), Fault> {
    let mut rows = Vec::new();
    let head = origin.since(known, &mut |row| {
        rows.push(row);
        Ok(())
    })?;
    rows.sort_by(|a: &OriginRow, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
    Ok((rows, head))
}

/// Returns all rows, and the head.
pub(super) fn all(origin: &dyn Origin) -> (Vec<OriginRow>, Position) {
    since(origin, Position::NONE).expect("all rows")
}

/// Commits these rows under a new name.
pub(super) fn commit(origin: &dyn Origin, from: Position, rows: &[OriginRow]) -> CommitOutcome {
    origin.commit(&Commit { from, name: new_name(), rows }).expect("an outcome")
}

/// Commits these rows, and returns the position of the commit.
pub(super) fn taken(origin: &dyn Origin, from: Position, rows: &[OriginRow]) -> Position {
    match commit(origin, from, rows) {
        CommitOutcome::Committed(position) => position,
        CommitOutcome::Overtaken => panic!("overtaken"),
    }
}

/// Takes a turn, without looking at what changed.
pub(super) fn turn(origin: &dyn Origin, known: Position) -> (Position, Box<dyn Turn + '_>) {
    origin.turn(known, &mut |_| Ok(())).unwrap_or_else(|fault| panic!("no turn: {fault}"))
}

#[test]
fn late_commit_lands_before_a_later_call_unless_it_no_longer_fits() {
    for is_first in [true, false] {
        let (origin, name, rows) = (Scripted::default(), new_name(), [put("a", "2")]);
        let from = found(&origin, &[put("a", "1")]);
        origin.at(1, Event::LandBefore(if is_first { 2 } else { 3 }));
        let late = origin.commit(&Commit { from, name, rows: &rows });
        assert!(matches!(late, Err(Fault::Unknown(_))));
        assert_eq!(commit(&origin, from, &rows) == CommitOutcome::Overtaken, is_first);
        assert_eq!(origin.committed(name).expect("an answer").is_some(), is_first);
    }
}
