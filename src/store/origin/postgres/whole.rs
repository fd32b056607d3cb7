//! Commits of all rows: the first of a workspace, and the one that replaces its content.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::store::values::position::{Position, Row};
use crate::store::values::schema::FORMAT;

use super::super::{Fault, Rows};
use super::columns::{column, number, parameter};
use super::failure::{Failure, no_workspace};
use super::link::{ANSWER, LONG, Link};
use super::read;
use super::sql;
use super::write::put;

/// The size of the pieces in which rows are sent, in bytes.
const PIECE: usize = 4 << 20;

/// How often the tables are created, if another node does the same at the same time.
const ATTEMPTS: usize = 5;

/// Founds the workspace with these rows, unless there is one.
pub(super) fn found(
    link: &mut Link,
    node: &str,
    (workspace, name): (Uuid, Uuid),
    rows: &mut Rows<'_>,
) -> Result<Option<Position>, Fault> {
    if read::head(link)?.is_some() {
        return Ok(None);
    }
    create_tables(link)?;
    link.run(sql::BEGIN).map_err(|failure| failure.of_question())?;
    lift_limits(link)?;
    let format = parameter(FORMAT);
    // Waits for another node that is founding: then there is a head, or it has failed.
    let parameters: [&(dyn ToSql + Sync); 4] = [&workspace, &format, &name, &sql::LAYOUT];
    let Some(head) =
        link.ask(LONG, sql::FOUND, &parameters).map_err(|failure| failure.of_question())?
    else {
        link.run("ROLLBACK").map_err(|failure| failure.of_question())?;
        return Ok(None);
    };
    require_no_rows(link)?;
    let position = Position { seq: number(&head, 0)?, name };
    finish(link, node, position, rows)?;
    Ok(Some(position))
}

/// Fails if the database has the rows of a workspace that has lost its head: they would become part of the new one.
fn require_no_rows(link: &Link) -> Result<(), Fault> {
    let found = link.ask(ANSWER, sql::HAS_ROWS, &[]).map_err(|failure| failure.of_question())?;
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
    let question = |failure: Failure| failure.of_question();
    lift_limits(link)?;
    let format = parameter(FORMAT);
    let head = link
        .ask(LONG, sql::MOVE_HORIZON, &[&name, &format])
        .map_err(question)?
        .ok_or_else(no_workspace)?;
    let position = Position { seq: number(&head, 0)?, name };
    link.wait(LONG, link.client().batch_execute(sql::DELETE_ROWS)).map_err(question)?;
    finish(link, node, position, rows)?;
    Ok(position)
}

/// Lifts the time limits of the transaction. A restore takes as long as its data, which may come from a slow disk.
fn lift_limits(link: &Link) -> Result<(), Fault> {
    let lift = format!("{}; {}", sql::WITHOUT_LIMITS, sql::LONG_WAIT);
    link.run(&lift).map_err(|failure| failure.of_question())
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
    link.ask(ANSWER, sql::KEEP_COMMIT, &[&seq, &position.name, &node]).map_err(question)?;
    let (mut piece, mut size) = (Vec::<Row>::new(), 0);
    for row in rows {
        let row = row?;
        size += row.size();
        piece.push(row);
        if size >= PIECE {
            put(link, position.seq, &piece, LONG).map_err(question)?;
            piece.clear();
            size = 0;
        }
    }
    put(link, position.seq, &piece, LONG).map_err(question)?;
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
