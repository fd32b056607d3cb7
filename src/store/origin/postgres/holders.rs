//! Who holds up commits: a session that has locked the head or another row for longer than a commit waits.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::Fault;
use super::connect::Connector;
use super::link::{ANSWER, Link, column};
use super::sql;

/// How long a session waits for what a commit needs before it is asked what it waits for.
const PROBE: Duration = Duration::from_millis(200);

/// The time after which a node that does not read what it asked for holds up the others for too long, in seconds.
const STALLED_AFTER: i64 = 3;

struct Session {
    pid: i32,
    /// `steward NAME` for a node.
    application: String,
    role: String,
    state: String,
    /// PostgreSQL's name of what it waits for, or nothing.
    wait: String,
    /// How long its transaction lasts, in seconds.
    age: i64,
    /// When its transaction began, or nothing if this role may not know that.
    since: String,
}

impl Session {
    fn of(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            pid: column(row, 0)?,
            application: column(row, 1)?,
            role: column(row, 2)?,
            state: column(row, 3)?,
            wait: column(row, 4)?,
            age: column(row, 5)?,
            since: column(row, 6)?,
        })
    }

    /// Whether this is a node that locked the head and then stopped to read. The database cannot end its statement.
    fn is_stalled_node(&self) -> bool {
        self.application.starts_with("steward ")
            && self.wait == "ClientWrite"
            && self.age >= STALLED_AFTER
    }

    /// Whether it has committed and waits for a standby. Ending it would not help: the next commit waits as well.
    fn waits_for_standby(&self) -> bool {
        self.wait == "SyncRep"
    }

    /// Describes the session in a text that stays the same while it lasts.
    fn describe(&self) -> String {
        let Self { pid, application, role, state, since, .. } = self;
        if *pid == 0 {
            return "a prepared transaction (pg_prepared_xacts) holds locks".to_owned();
        }
        let since = if since.is_empty() { since.clone() } else { format!(", since {since}") };
        format!("session {pid} ({application}, role {role}, {state}{since}) holds locks")
    }

    fn way_out(&self) -> String {
        match self.pid {
            0 => "to end it: ROLLBACK PREPARED and its name".to_owned(),
            pid => format!("to end it: SELECT pg_terminate_backend({pid})"),
        }
    }
}

/// Adds to the error of a statement that waited for a lock which session has it, and what to do. Ends the session of a
/// node that does not read its answer.
pub(super) fn explain(connector: &Connector, why: String) -> String {
    let Ok((sessions, link)) = blockers(connector) else { return why };
    let Some(first) = sessions.first() else { return format!("{why}; the lock is free again") };
    let described: Vec<_> = sessions.iter().map(Session::describe).collect();
    let described = described.join(", ");
    if sessions.iter().any(Session::waits_for_standby) {
        return format!(
            "{why}: {described} and waits for a synchronous standby; see that one streams"
        );
    }
    let stalled: Vec<_> = sessions.iter().filter(|session| session.is_stalled_node()).collect();
    if stalled.is_empty() {
        return format!("{why}: {described}; {}", first.way_out());
    }
    for session in stalled {
        // The next attempt tells if that was not possible.
        let _ = link.ask(ANSWER, sql::TERMINATE, &[&session.pid]);
    }
    format!("{why}: {described}, and does not read what it asked for; it was ended")
}

/// Returns the sessions for which a commit waits, directly or not, and which wait for no lock themselves. If there are none, a
/// session may have locked other rows: returns those that have written for a while.
fn blockers(connector: &Connector) -> Result<(Vec<Session>, Link), Fault> {
    let waiting = connector.connect()?;
    let pid = waiting.ask(ANSWER, sql::OWN_PID, &[])?;
    let pid: i32 = pid.as_ref().map_or(Ok(0), |row| column(row, 0))?;
    // The server goes on to wait although nobody waits for its answer. It gives up when the connection ends.
    let _ = waiting.wait(PROBE, waiting.client().batch_execute(sql::TRY_LOCKS));
    let link = connector.connect()?;
    let mut sessions = ask(&link, sql::BLOCKERS, &[&pid])?;
    drop(waiting);
    if sessions.is_empty() {
        sessions = ask(&link, sql::WRITERS, &[])?;
    }
    Ok((sessions, link))
}

fn ask(link: &Link, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Session>, Fault> {
    let rows = link.question(ANSWER, link.client().query(sql, parameters))?;
    rows.iter().map(Session::of).collect()
}
