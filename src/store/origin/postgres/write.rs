//! Committing: changes of a batch, the first rows of a workspace, and all rows that replace its content.

use std::time::Duration;

use futures_util::future::join;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row as SqlRow, Statement};
use uuid::Uuid;

use crate::store::values::position::{OriginRow, Position};
use crate::store::values::schema::FORMAT;

use super::super::{Commit, CommitOutcome, Fault, Rows};
use super::failure::{Failure, no_workspace};
use super::link::{ANSWER, LONG, Link, column, number, parameter};
use super::{read, sql};

/// The size of the rows up to which a commit is one statement, in bytes.
const ONE_STATEMENT: usize = 1 << 20;

/// The size of the pieces in which larger commits are sent, in bytes.
const PIECE: usize = 4 << 20;

/// Tables, keys and values of rows, as parameters of a statement.
type Arrays<'r> = (Vec<&'static str>, Vec<&'r [u8]>, Vec<Option<&'r [u8]>>);

fn arrays(rows: &[OriginRow]) -> Arrays<'_> {
    rows.iter().map(|row| (row.table.name(), row.key.as_slice(), row.sealed.as_deref())).collect()
}

/// Applies `commit` in a transaction of its own.
pub(super) fn commit(
    link: &mut Link,
    node: &str,
    commit: &Commit<'_>,
) -> Result<CommitOutcome, Fault> {
    if size(commit.rows) > ONE_STATEMENT {
        link.run(sql::BEGIN)?;
        return commit_in_transaction(link, node, commit);
    }
    let statement = link.prepared(sql::COMMIT_IF_NEXT)?;
    match link.wait_durably(ANSWER, send(link, &statement, node, commit, commit.rows)) {
        Ok(row) => outcome(row.as_ref(), commit.name),
        Err(failure) => failure.of_commit(),
    }
}

/// Applies `commit` in the transaction that the session has begun, and ends it.
pub(super) fn commit_in_transaction(
    link: &mut Link,
    node: &str,
    commit: &Commit<'_>,
) -> Result<CommitOutcome, Fault> {
    let statement = link.prepared(sql::COMMIT_IF_NEXT)?;
    if size(commit.rows) > ONE_STATEMENT {
        let outcome = commit_in_pieces(link, &statement, node, commit)?;
        if outcome == CommitOutcome::Overtaken {
            link.run("ROLLBACK")?;
        }
        return Ok(outcome);
    }
    // Both statements are sent at once. If the first fails, the second rolls back.
    let both = async {
        let ending = link.client().batch_execute("COMMIT");
        let moving = send(link, &statement, node, commit, commit.rows);
        let (moved, ended) = join(moving, ending).await;
        let moved = moved?;
        ended?;
        Ok(moved)
    };
    match link.wait_durably(ANSWER, both) {
        Ok(row) => outcome(row.as_ref(), commit.name),
        Err(failure) => failure.of_commit(),
    }
}

/// Sends a large commit in pieces. If it is overtaken, the transaction goes on.
fn commit_in_pieces(
    link: &mut Link,
    statement: &Statement,
    node: &str,
    commit: &Commit<'_>,
) -> Result<CommitOutcome, Fault> {
    let put_more = link.prepared(sql::PUT_MORE)?;
    let mut pieces = pieces(commit.rows);
    let first = pieces.next().unwrap_or_default();
    let moved = match link.wait(ANSWER, send(link, statement, node, commit, first)) {
        Ok(row) => outcome(row.as_ref(), commit.name)?,
        Err(failure) => return rolled_back(&failure),
    };
    let CommitOutcome::Committed(position) = moved else { return Ok(moved) };
    for piece in pieces {
        if let Err(failure) = put(link, &put_more, position.seq, piece, ANSWER) {
            return rolled_back(&failure);
        }
    }
    match link.wait_durably(ANSWER, link.client().batch_execute("COMMIT")) {
        Ok(()) => Ok(moved),
        Err(failure) => failure.of_commit(),
    }
}

/// Returns what became of a commit whose transaction failed before its end. Nothing was done, for any reason of the
/// failure.
fn rolled_back(failure: &Failure) -> Result<CommitOutcome, Fault> {
    match failure.of_commit() {
        Err(Fault::Unknown(why)) => Err(Fault::Away(why)),
        outcome => outcome,
    }
}

/// Puts rows into the commit `seq`, whose transaction has moved the head. Waits for it at most for `limit`.
fn put(
    link: &Link,
    put_more: &Statement,
    seq: u64,
    rows: &[OriginRow],
    limit: Duration,
) -> Result<(), Failure> {
    let (tables, keys, values) = arrays(rows);
    let seq = parameter(seq);
    let parameters: [&(dyn ToSql + Sync); 4] = [&tables, &keys, &values, &seq];
    link.wait(limit, link.client().execute(put_more, &parameters)).map(|_| ())
}

/// Runs [`sql::COMMIT_IF_NEXT`] with these of the commit's rows.
async fn send(
    link: &Link,
    statement: &Statement,
    node: &str,
    commit: &Commit<'_>,
    rows: &[OriginRow],
) -> Result<Option<SqlRow>, tokio_postgres::Error> {
    let Commit { from, name, .. } = commit;
    let (tables, keys, values) = arrays(rows);
    let (seq, format) = (parameter(from.seq), parameter(FORMAT));
    let parameters: [&(dyn ToSql + Sync); 8] =
        [&tables, &keys, &values, &seq, &from.name, name, &node, &format];
    link.client().query_opt(statement, &parameters).await
}

fn outcome(row: Option<&SqlRow>, name: Uuid) -> Result<CommitOutcome, Fault> {
    match row {
        Some(row) => Ok(CommitOutcome::Committed(Position { seq: number(row, 0)?, name })),
        None => Ok(CommitOutcome::Overtaken),
    }
}

fn size(rows: &[OriginRow]) -> usize {
    rows.iter().map(OriginRow::size).sum()
}

/// Splits rows into pieces of about [`PIECE`] bytes.
fn pieces(rows: &[OriginRow]) -> impl Iterator<Item = &[OriginRow]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut left = PIECE;
        let fits = |row: &&OriginRow| {
            let is_first = left == PIECE;
            left = left.saturating_sub(row.size().max(1));
            is_first || left > 0
        };
        let count = rest.iter().take_while(fits).count();
        let (piece, after) = rest.split_at_checked(count)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// How often the tables are created, if another node does the same at the same time.
const ATTEMPTS: usize = 5;

/// Founds the workspace with these rows, unless there is one.
pub(super) fn found_workspace(
    link: &mut Link,
    node: &str,
    (workspace, name): (Uuid, Uuid),
    rows: &mut Rows<'_>,
) -> Result<Option<Position>, Fault> {
    if read::head(link)?.is_some() {
        return Ok(None);
    }
    create_tables(link)?;
    link.run(sql::BEGIN)?;
    lift_limits(link)?;
    let format = parameter(FORMAT);
    // Waits for another node that is founding: then there is a head, or it has failed.
    let parameters: [&(dyn ToSql + Sync); 4] = [&workspace, &format, &name, &sql::LAYOUT];
    let Some(head) = link.ask(LONG, sql::FOUND_WORKSPACE, &parameters)? else {
        link.run("ROLLBACK")?;
        return Ok(None);
    };
    require_no_rows(link)?;
    let position = Position { seq: number(&head, 0)?, name };
    finish(link, node, position, rows)?;
    Ok(Some(position))
}

/// Fails if the database has the rows of a workspace that has lost its head: they would become part of the new one.
fn require_no_rows(link: &Link) -> Result<(), Fault> {
    let found = link.ask(ANSWER, sql::HAS_ROWS, &[])?;
    match found.map(|row| column(&row, 0)).transpose()? {
        Some(true) => Err(Fault::Refused(
            "it has the rows of a workspace and no head (steward_head); restore the database, or drop the tables \
             steward_head, steward_commits, steward_rows and steward_nodes"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Replaces all rows in the transaction that the session has begun, moves the horizon to this commit, and commits.
pub(super) fn replace(
    link: &mut Link,
    node: &str,
    name: Uuid,
    rows: &mut Rows<'_>,
) -> Result<Position, Fault> {
    lift_limits(link)?;
    let head = link.ask(LONG, sql::MOVE_HORIZON, &[&name, &parameter(FORMAT)])?;
    let position = Position { seq: number(&head.ok_or_else(no_workspace)?, 0)?, name };
    link.question(LONG, link.client().batch_execute(sql::DELETE_ROWS))?;
    finish(link, node, position, rows)?;
    Ok(position)
}

/// Lifts the time limits of the transaction. A restore takes as long as its data, which may come from a slow disk.
fn lift_limits(link: &Link) -> Result<(), Fault> {
    link.run(&format!("{}; {}", sql::WITHOUT_LIMITS, sql::LONG_WAIT))
}

/// Records the commit, sends the rows, and commits.
fn finish(
    link: &mut Link,
    node: &str,
    position: Position,
    rows: &mut Rows<'_>,
) -> Result<(), Fault> {
    let question = |failure: Failure| failure.of_question();
    let seq = parameter(position.seq);
    link.ask(ANSWER, sql::KEEP_COMMIT, &[&seq, &position.name, &node])?;
    let put_more = link.prepared(sql::PUT_MORE)?;
    let (mut piece, mut size) = (Vec::<OriginRow>::new(), 0);
    for row in rows {
        let row = row?;
        size += row.size();
        piece.push(row);
        if size >= PIECE {
            put(link, &put_more, position.seq, &piece, LONG).map_err(question)?;
            piece.clear();
            size = 0;
        }
    }
    put(link, &put_more, position.seq, &piece, LONG).map_err(question)?;
    match link.wait_durably(LONG, link.client().batch_execute("COMMIT")) {
        Ok(()) => Ok(()),
        Err(failure) => match failure.of_commit() {
            Ok(_) => Err(failure.of_question()),
            Err(fault) => Err(fault),
        },
    }
}

/// Creates the tables that are missing.
fn create_tables(link: &Link) -> Result<(), Fault> {
    let mut attempt = 1;
    loop {
        match link.wait(LONG, link.client().batch_execute(sql::CREATE_TABLES)) {
            Ok(()) => return Ok(()),
            // Another node created the same table at the same time. It is there now.
            Err(failure) if attempt < ATTEMPTS && is_race(&failure) => attempt += 1,
            Err(failure) => return Err(failure.of_question()),
        }
    }
}

fn is_race(failure: &Failure) -> bool {
    failure.is(&SqlState::UNIQUE_VIOLATION)
        || failure.is(&SqlState::DUPLICATE_TABLE)
        || failure.is(&SqlState::DUPLICATE_OBJECT)
        || failure.is(&SqlState::T_R_DEADLOCK_DETECTED)
}
