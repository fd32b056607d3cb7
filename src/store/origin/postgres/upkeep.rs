//! What keeps the database small, and shows which nodes work.

use time::OffsetDateTime;
use tokio_postgres::types::ToSql;

use crate::store::values::position::Position;

use super::super::{Beat, Fault, Node};
use super::failure::{Failure, no_workspace};
use super::link::{ANSWER, LONG, Link, column, number, parameter};
use super::sql;

/// Forgets what no copy needs that has one of the last `keep` commits.
///
/// The horizon moves first and by itself: the head is not locked while rows are deleted, and a copy before the horizon
/// never misses the rows that it would need.
pub(super) fn trim(link: &Link, keep: u64) -> Result<(), Fault> {
    let question = |failure: Failure| failure.of_question();
    let keep = parameter(keep);
    let moved = link.ask(ANSWER, sql::ADVANCE_HORIZON, &[&keep]);
    let horizon: i64 = column(&moved.map_err(question)?.ok_or_else(no_workspace)?, 0)?;
    let client = link.client();
    let begin = format!("{}; {}", sql::BEGIN, sql::WITHOUT_LIMITS);
    let forgetting = async {
        client.batch_execute(&begin).await?;
        client.execute(sql::DELETE_REMOVED, &[&horizon]).await?;
        client.execute(sql::DELETE_COMMITS, &[&horizon]).await?;
        client.execute(sql::DELETE_NODES, &[]).await?;
        client.batch_execute("COMMIT").await
    };
    link.wait(LONG, forgetting).map_err(question)
}

/// Records that the node works, and what keeps it from serving.
pub(super) fn heartbeat(
    link: &mut Link,
    node: &str,
    position: Position,
    problem: Option<&str>,
    now: OffsetDateTime,
) -> Result<Beat, Fault> {
    // Every encoding of a database has these characters.
    let problem = problem.map(|text| text.replace(|c: char| !c.is_ascii(), "?"));
    let seq = parameter(position.seq);
    let release = env!("CARGO_PKG_VERSION");
    let parameters: [&(dyn ToSql + Sync); 4] = [&node, &release, &seq, &problem];
    let question = |failure: Failure| failure.of_question();
    let statement = link.prepared(sql::HEARTBEAT).map_err(question)?;
    let recorded = link.wait_durably(ANSWER, link.client().query_one(&statement, &parameters));
    let row = recorded.map_err(question)?;
    let seen: OffsetDateTime = column(&row, 0)?;
    let ahead = (now - seen).whole_milliseconds();
    let ahead = i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX });
    Ok(Beat { ahead, seen, before: column(&row, 1)? })
}

/// Returns once the commit `known` is where the settings of the database want it: a write, which waits for the standby like
/// every other. The same statement looks for the commit, so that both are of one server.
pub(super) fn confirm(link: &mut Link, known: Position) -> Result<(), Fault> {
    let question = |failure: Failure| failure.of_question();
    let statement = link.prepared(sql::CONFIRM).map_err(question)?;
    let seq = parameter(known.seq);
    let parameters: [&(dyn ToSql + Sync); 2] = [&seq, &known.name];
    let locked = link.wait_durably(ANSWER, link.client().query_opt(&statement, &parameters));
    let locked = locked.map_err(question)?.ok_or_else(no_workspace)?;
    let has_commit: bool = column(&locked, 0)?;
    if has_commit { Ok(()) } else { Err(Fault::Forked) }
}

/// Returns the nodes, ordered by name.
pub(super) fn nodes(link: &Link) -> Result<Vec<Node>, Fault> {
    let rows = link.wait(ANSWER, link.client().query(sql::NODES, &[]));
    let rows = rows.map_err(|failure| failure.of_question())?;
    rows.iter()
        .map(|row| {
            Ok(Node {
                name: column(row, 0)?,
                release: column(row, 1)?,
                seq: number(row, 2)?,
                seen: column(row, 3)?,
                problem: column(row, 4)?,
            })
        })
        .collect()
}
