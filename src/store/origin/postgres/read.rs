//! Reading what changed.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::LazyLock;

use futures_util::StreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Row as SqlRow, RowStream};
use uuid::Uuid;

use crate::store::schema::{FORMAT, Table};

use super::super::{Fault, Head, Position, Row, Take};
use super::columns::{column, number, parameter};
use super::failure::{Failure, no_workspace};
use super::link::{ANSWER, LONG, Link};
use super::sql;

/// How many rows are handed over at a time.
const CHUNK: usize = 256;

/// The tables by the names that the database has for them.
static TABLES: LazyLock<HashMap<&'static str, Table>> =
    LazyLock::new(|| Table::ALL.iter().map(|table| (table.name(), *table)).collect());

/// Calls `take` with what changed after `known`, and returns the head.
///
/// If it fails, rows may still be on their way: drop the link.
pub(super) fn since(
    link: &mut Link,
    known: Position,
    take: &mut Take<'_>,
) -> Result<Position, Fault> {
    if known != Position::NONE {
        return changes(link, known, take);
    }
    // All rows can take longer than a statement may.
    let begin = format!("{} READ ONLY; {}", sql::BEGIN, sql::WITHOUT_LIMITS);
    link.run(&begin).map_err(|failure| failure.of_question())?;
    let head = changes(link, known, take)?;
    link.run("COMMIT").map_err(|failure| failure.of_question())?;
    Ok(head)
}

/// Does what [`since`] does, within the time limits of the session.
fn changes(link: &mut Link, known: Position, take: &mut Take<'_>) -> Result<Position, Fault> {
    let question = |failure: Failure| failure.of_question();
    let statement = link.prepared(sql::SINCE).map_err(question)?;
    let asking = link.client().query_raw(&statement, [parameter(known.seq)]);
    let rows = link.wait(ANSWER, asking).map_err(question)?;
    hand_over(link, rows, known, take)
}

/// Hands the rows over between the waits, so that `take` may do what it likes, and a slow `take` slows the database.
pub(super) fn hand_over(
    link: &Link,
    rows: RowStream,
    known: Position,
    take: &mut Take<'_>,
) -> Result<Position, Fault> {
    let mut chunks = pin!(rows.ready_chunks(CHUNK));
    let limit = if known == Position::NONE { LONG } else { ANSWER };
    let mut head = None;
    while let Some(chunk) = link
        .wait(limit, async { Ok(chunks.next().await) })
        .map_err(|failure| failure.of_question())?
    {
        for row in chunk {
            let row = row.map_err(|error| Failure::Sql(error).of_question())?;
            if head.is_none() {
                head = Some(head_of(&row, known)?);
            }
            if let Some(row) = changed(&row)?
                && (row.sealed.is_some() || known != Position::NONE)
            {
                take(row)?;
            }
        }
    }
    head.ok_or_else(no_workspace)
}

/// Returns the head if a copy at `known` can take what follows.
fn head_of(row: &SqlRow, known: Position) -> Result<Position, Fault> {
    let format = number(row, 0)?;
    if format > FORMAT {
        return Err(Fault::Newer { found: format });
    }
    let head = Position { seq: number(row, 2)?, name: column(row, 3)? };
    let (horizon, mine) = (number(row, 1)?, column::<Option<Uuid>>(row, 4)?);
    let is_past = mine == Some(known.name) && (horizon..=head.seq).contains(&known.seq);
    if known == Position::NONE || is_past { Ok(head) } else { Err(Fault::Forked) }
}

/// Returns the changed row, if there is one.
fn changed(row: &SqlRow) -> Result<Option<Row>, Fault> {
    let Some(name) = column::<Option<&str>>(row, 5)? else { return Ok(None) };
    let sealed = column::<Option<Vec<u8>>>(row, 7)?;
    match TABLES.get(name) {
        Some(table) => Ok(Some(Row { table: *table, key: column(row, 6)?, sealed })),
        // A table that this release does not have lacks the row, too.
        None if sealed.is_none() => Ok(None),
        None => Err(Fault::Newer { found: number(row, 0)? }),
    }
}

/// Returns the number of the commit with this name.
pub(super) fn committed(link: &mut Link, name: Uuid) -> Result<Option<u64>, Fault> {
    let question = |failure: Failure| failure.of_question();
    let statement = link.prepared(sql::COMMITTED).map_err(question)?;
    let row = link.ask(ANSWER, &statement, &[&name]).map_err(question)?;
    row.map(|row| number(&row, 0)).transpose()
}

/// Returns the head, or `None` if the database has no workspace.
pub(super) fn head(link: &mut Link) -> Result<Option<Head>, Fault> {
    let row = match link.ask(ANSWER, sql::HEAD, &[]) {
        Ok(Some(row)) => row,
        Ok(None) => return Ok(None),
        Err(failure) if failure.is(&SqlState::UNDEFINED_TABLE) => return Ok(None),
        Err(failure) => return Err(failure.of_question()),
    };
    let layout: i32 = column(&row, 1)?;
    if layout > sql::LAYOUT {
        return Err(Fault::Refused(format!(
            "the tables of the database have the layout {layout} of a newer release, this release reads up to {}",
            sql::LAYOUT
        )));
    }
    Ok(Some(Head {
        workspace: column(&row, 0)?,
        format: number(&row, 2)?,
        position: Position { seq: number(&row, 3)?, name: column(&row, 4)? },
        horizon: number(&row, 5)?,
    }))
}
