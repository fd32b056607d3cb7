//! Who holds up commits: a session that has locked the head for longer than a commit waits.

use std::time::Duration;

use tokio_postgres::Row;

use super::super::Fault;
use super::columns::column;
use super::connect::Connector;
use super::link::{ANSWER, Link};
use super::sql;

/// How long a session waits for what a commit needs before it is asked what it waits for.
const PROBE: Duration = Duration::from_millis(200);

/// The time after which a node that does not read what it asked for holds up the others for too long, in seconds.
const STALLED_AFTER: i64 = 3;

/// A session.
struct Session {
    pid: i32,
    /// `steward NAME` for a node.
    application: String,
    role: String,
    state: String,
    /// Whether it sends an answer that its client does not read.
    is_sending: bool,
    /// How long its transaction lasts, in seconds.
    age: i64,
}

impl Session {
    fn of(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            pid: column(row, 0)?,
            application: column(row, 1)?,
            role: column(row, 2)?,
            state: column(row, 3)?,
            is_sending: column(row, 4)?,
            age: column(row, 5)?,
        })
    }

    /// Whether this is a node that locked the head and then stopped to read. The database cannot end its statement.
    fn is_stalled_node(&self) -> bool {
        self.application.starts_with("steward ") && self.is_sending && self.age >= STALLED_AFTER
    }

    fn describe(&self) -> String {
        let Self { pid, application, role, state, age, .. } = self;
        format!(
            "session {pid} ({application}, role {role}, {state}, its transaction is {age} s old) holds the lock"
        )
    }
}

/// Adds to the error of a statement that waited for a lock which session has it, and what to do. Ends the session of a node
/// that stands still.
pub(super) fn explain(connector: &Connector, why: String) -> String {
    let Ok((sessions, link)) = blockers(connector) else { return why };
    let Some(first) = sessions.first() else { return format!("{why}; the lock is free again") };
    let described: Vec<_> = sessions.iter().map(Session::describe).collect();
    let described = described.join(", ");
    let stalled: Vec<_> = sessions.iter().filter(|session| session.is_stalled_node()).collect();
    if stalled.is_empty() {
        let pid = first.pid;
        return format!("{why}: {described}; to end it: SELECT pg_terminate_backend({pid})");
    }
    for session in stalled {
        // The next attempt tells if that was not possible.
        let _ = link.ask(ANSWER, sql::TERMINATE, &[&session.pid]);
    }
    format!("{why}: {described}, and does not read what it asked for; it was ended")
}

/// Returns the sessions for which a commit waits, directly or not, and which wait for no lock themselves.
fn blockers(connector: &Connector) -> Result<(Vec<Session>, Link), Fault> {
    let waiting = connector.connect()?;
    let pid = waiting.ask(ANSWER, sql::OWN_PID, &[]).map_err(|failure| failure.of_question())?;
    let pid: i32 = pid.as_ref().map_or(Ok(0), |row| column(row, 0))?;
    // The server goes on to wait although nobody waits for its answer. It gives up when the connection ends.
    let _ = waiting.wait(PROBE, waiting.client().batch_execute(sql::TRY_LOCKS));
    let link = connector.connect()?;
    let rows = link.wait(ANSWER, link.client().query(sql::BLOCKERS, &[&pid]));
    let rows = rows.map_err(|failure| failure.of_question())?;
    let sessions = rows.iter().map(Session::of).collect::<Result<Vec<_>, _>>()?;
    drop(waiting);
    Ok((sessions, link))
}
