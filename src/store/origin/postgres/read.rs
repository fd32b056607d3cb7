//! Reading what changed.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Row as SqlRow, RowStream};
use uuid::Uuid;

use crate::store::values::position::{OriginRow, Position};
use crate::store::values::schema::{FORMAT, Table};

use super::super::{Fault, Head, Lacking, Take};
use super::failure::{Failure, no_workspace};
use super::link::{ANSWER, FAR, LONG, Link, column, number, parameter};
use super::sql;

/// How many rows are handed over at a time.
const CHUNK: usize = 256;

/// Calls `take` with what changed after `known`, and returns the head.
///
/// If it fails, rows may still be on their way: drop the link.
pub(super) fn since(
    link: &mut Link,
    known: Position,
    take: &mut Take<'_>,
) -> Result<Position, Fault> {
    if known == Position::NONE { whole(link, take) } else { changes(link, known, take) }
}

/// Calls `take` with all rows.
fn whole(link: &mut Link, take: &mut Take<'_>) -> Result<Position, Fault> {
    begin_long(link)?;
    let head = head(link)?.ok_or_else(no_workspace)?;
    require_known_format(head.format)?;
    let asking = link.client().query_raw(sql::ALL_ROWS, std::iter::empty::<i64>());
    let rows = link.question(LONG, asking)?;
    end_long(link, rows, LONG, head.format, take)?;
    Ok(head.position)
}

/// Calls `take` with what changed, within the time limits of the session.
fn changes(link: &mut Link, known: Position, take: &mut Take<'_>) -> Result<Position, Fault> {
    let statement = link.prepared(sql::SINCE)?;
    let asking = link.client().query_raw(&statement, [parameter(known.seq)]);
    let rows = link.wait(ANSWER, asking).map_err(|failure| of_changes(&failure))?;
    hand_over(link, rows, known, take)
}

/// Returns the fault of a question about changes. They may be too many for the time limit of a statement.
fn of_changes(failure: &Failure) -> Fault {
    if failure.is(&SqlState::QUERY_CANCELED) { Fault::Behind } else { failure.of_question() }
}

/// Calls `take` with what changed after `known`, and returns the head. `rows` is the result of [`sql::SINCE`].
pub(super) fn hand_over(
    link: &Link,
    rows: RowStream,
    known: Position,
    take: &mut Take<'_>,
) -> Result<Position, Fault> {
    let (mut head, mut left) = (None, sql::MOST_CHANGES);
    each(link, rows, (ANSWER, of_changes), &mut |found| {
        let format = number(&found, 0)?;
        if head.is_none() {
            require_known_format(format)?;
            head = Some(head_of(&found, known)?);
        }
        left = left.checked_sub(1).filter(|left| *left > 0).ok_or(Fault::Behind)?;
        changed(&found, 5, format)?.map_or(Ok(()), &mut *take)
    })?;
    head.ok_or_else(no_workspace)
}

/// Calls `take` with what changed after `known`, without time limits, and returns the head.
pub(super) fn far_changes(
    link: &mut Link,
    known: Position,
    take: &mut Take<'_>,
) -> Result<Position, Fault> {
    begin_long(link)?;
    let (head, format) = past(link, known)?;
    let asking = link.client().query_raw(sql::ROWS_SINCE, [parameter(known.seq)]);
    let rows = link.question(FAR, asking)?;
    end_long(link, rows, FAR, format, take)?;
    Ok(head)
}

/// Returns how many rows a copy at `known` lacks.
pub(super) fn lacking(link: &mut Link, known: Position) -> Result<Lacking, Fault> {
    begin_long(link)?;
    past(link, known)?;
    // The whole table is read, on a cold server from its disk.
    let counted = link.ask(LONG, sql::LACKING, &[&parameter(known.seq)])?;
    let counted = counted.ok_or_else(no_workspace)?;
    link.run("COMMIT")?;
    Ok(Lacking { rows: number(&counted, 0)?, of: number(&counted, 1)? })
}

/// Returns the head and the format, if a copy at `known` can take what follows.
fn past(link: &Link, known: Position) -> Result<(Position, u64), Fault> {
    let found = link.ask(ANSWER, sql::PAST, &[&parameter(known.seq)])?;
    let found = found.ok_or_else(no_workspace)?;
    let format = number(&found, 0)?;
    require_known_format(format)?;
    Ok((head_of(&found, known)?, format))
}

/// Begins a reading that may take longer than a statement may, and whose node may be slow to store what it read.
fn begin_long(link: &Link) -> Result<(), Fault> {
    link.run(&format!("{}; {}; {}", sql::BEGIN_READING, sql::WITHOUT_LIMITS, sql::LONG_WAIT))
}

/// Calls `take` with the rows of such a reading, and ends it. `limit` is the time limit of one wait for rows.
fn end_long(
    link: &Link,
    rows: RowStream,
    limit: Duration,
    format: u64,
    take: &mut Take<'_>,
) -> Result<(), Fault> {
    each(link, rows, (limit, Failure::of_question), &mut |found| {
        changed(&found, 0, format)?.map_or(Ok(()), &mut *take)
    })?;
    link.run("COMMIT")
}

/// Calls `take` with each row of a result. `take` runs between the waits for rows, so it may block, and the database
/// waits for it. `limit` is the time limit of one wait, and `of` returns the fault of a failed one.
fn each(
    link: &Link,
    rows: RowStream,
    (limit, of): (Duration, fn(&Failure) -> Fault),
    take: &mut dyn FnMut(SqlRow) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut chunks = pin!(rows.ready_chunks(CHUNK));
    while let Some(chunk) =
        link.wait(limit, async { Ok(chunks.next().await) }).map_err(|failure| of(&failure))?
    {
        for row in chunk {
            take(row.map_err(|error| of(&Failure::Sql(error)))?)?;
        }
    }
    Ok(())
}

fn require_known_format(format: u64) -> Result<(), Fault> {
    if format > FORMAT { Err(Fault::Newer { found: format }) } else { Ok(()) }
}

/// Returns the head if a copy at `known` can take what follows. A copy that lacks nothing needs no history.
fn head_of(found: &SqlRow, known: Position) -> Result<Position, Fault> {
    let head = Position { seq: number(found, 2)?, name: column(found, 3)? };
    let (horizon, mine) = (number(found, 1)?, column::<Option<Uuid>>(found, 4)?);
    let is_past = mine == Some(known.name) && (horizon..=head.seq).contains(&known.seq);
    if is_past || head == known {
        return Ok(head);
    }
    let is_older = mine == Some(known.name) && known.seq < head.seq;
    Err(if is_older { Fault::TooOld } else { Fault::Forked })
}

/// Returns the changed row, if there is one: its table is the column `at`, its key and value are the next two.
fn changed(found: &SqlRow, at: usize, format: u64) -> Result<Option<OriginRow>, Fault> {
    let Some(name) = column::<Option<&str>>(found, at)? else { return Ok(None) };
    let sealed = column::<Option<Vec<u8>>>(found, at + 2)?;
    match Table::with_name(name) {
        Some(table) => Ok(Some(OriginRow { table, key: column(found, at + 1)?, sealed })),
        // A table that this release does not have lacks the row, too.
        None if sealed.is_none() => Ok(None),
        None => Err(Fault::Newer { found: format }),
    }
}

/// Returns the head, or `None` if the database has no workspace.
pub(super) fn head(link: &mut Link) -> Result<Option<Head>, Fault> {
    let row = match link.wait(ANSWER, link.client().query_opt(sql::HEAD, &[])) {
        Ok(Some(row)) => row,
        Ok(None) => return Ok(None),
        Err(failure) if failure.is(&SqlState::UNDEFINED_TABLE) => return Ok(None),
        Err(failure) => return Err(failure.of_question()),
    };
    let layout: i32 = column(&row, 1)?;
    if layout > sql::LAYOUT {
        return Err(Fault::Refused(format!(
            "the tables of the database have the layout {layout} of a newer release, this release reads up to {}: install the newer one",
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
