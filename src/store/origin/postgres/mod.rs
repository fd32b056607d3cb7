//! PostgreSQL as the origin. No other module names its client.
//!
//! Each call takes an idle connection, or makes one. A connection belongs to one call at a time, and is used again only
//! if that call succeeded. So there are as many connections as threads that call at once.

mod connect;
mod failure;
mod holders;
mod hosts;
mod link;
mod read;
mod sql;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join3;
use time::OffsetDateTime;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::store::disk::place::DatabaseUrl;
use crate::store::values::position::{Position, Primary};
use crate::store::values::schema::Table;

use super::trouble::RepeatedWarning;
use super::{Beat, Commit, CommitOutcome, Fault, Head, Lacking, Node, Origin, Rows, Take, Turn};

use connect::Connector;
use failure::no_workspace;
use link::{ANSWER, LONG, Link, column, number, parameter};

/// A PostgreSQL database as the origin.
pub struct Postgres {
    connector: Connector,
    idle: Mutex<Vec<Link>>,
    /// The warning about sessions that hold up commits.
    held: Mutex<RepeatedWarning>,
    /// The name of this node.
    node: String,
    /// The URL without its password.
    shown: String,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({})", self.shown)
    }
}

impl Postgres {
    /// Returns the database at `url` for the node of this name. Connects at the first call. If `ca` is a PEM file, TLS
    /// accepts only servers with a certificate from an authority there.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the URL or the file is not valid.
    pub fn new(url: &DatabaseUrl, ca: Option<&Path>, node: &str) -> Result<Self, Fault> {
        let connector = Connector::new(url, ca, node)?;
        let (node, shown) = (node.to_owned(), url.shown().to_owned());
        Ok(Self { connector, idle: Mutex::default(), held: Mutex::default(), node, shown })
    }

    /// Returns an idle connection that is still open, to a server that no other has replaced, or a new one.
    fn link(&self) -> Result<Link, Fault> {
        let is_current = |link: &Link| !link.primary.is_before(self.connector.primary());
        loop {
            let idle = self.idle().pop();
            match idle {
                Some(link) if is_current(&link) && link.is_open() => return Ok(link),
                Some(_) => {}
                None => return self.connector.connect(),
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a connection. After a failure its state is unknown, so it is closed.
    fn with_link<T>(&self, work: impl FnOnce(&mut Link) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut link = self.link()?;
        let done = work(&mut link).map_err(|fault| self.explain(fault))?;
        self.idle().push(link);
        Ok(done)
    }

    /// Adds to a fault who causes it.
    fn explain(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Held(why) => {
                let why = holders::explain(&self.connector, why);
                if self.held().is_due(&why) {
                    tracing::warn!(database = self.shown, cause = why, "commits are held up");
                }
                Fault::Held(why)
            }
            fault => fault,
        }
    }

    fn held(&self) -> MutexGuard<'_, RepeatedWarning> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Origin for Postgres {
    fn since(&self, known: Position, take: &mut Take<'_>) -> Result<Position, Fault> {
        self.with_link(|link| read::since(link, known, take))
    }

    fn since_far(&self, known: Position, take: &mut Take<'_>) -> Result<Position, Fault> {
        self.with_link(|link| read::far_changes(link, known, take))
    }

    fn lacking(&self, known: Position) -> Result<Lacking, Fault> {
        self.with_link(|link| read::lacking(link, known))
    }

    fn commit(&self, commit: &Commit<'_>) -> Result<CommitOutcome, Fault> {
        self.with_link(|link| write::commit(link, &self.node, commit))
    }

    fn turn<'o>(
        &'o self,
        known: Position,
        take: &mut Take<'_>,
    ) -> Result<(Position, Box<dyn Turn + 'o>), Fault> {
        let begun = HeldTurn::begin(self, known, take);
        let (head, turn) = begun.map_err(|fault| self.explain(fault))?;
        Ok((head, Box::new(turn)))
    }

    fn committed(&self, name: Uuid) -> Result<Option<u64>, Fault> {
        self.with_link(|link| {
            let statement = link.prepared(sql::COMMITTED)?;
            let row = link.ask(ANSWER, &statement, &[&name])?;
            row.map(|row| number(&row, 0)).transpose()
        })
    }

    fn confirm(&self, known: Position) -> Result<(), Fault> {
        self.with_link(|link| {
            let statement = link.prepared(sql::CONFIRM)?;
            let seq = parameter(known.seq);
            let parameters: [&(dyn ToSql + Sync); 2] = [&seq, &known.name];
            // The same statement looks for the commit and waits for the standby, so that both are of one server.
            let locked =
                link.wait_durably(ANSWER, link.client().query_opt(&statement, &parameters));
            let locked = locked.map_err(|failure| failure.of_question())?;
            let has_commit: bool = column(&locked.ok_or_else(no_workspace)?, 0)?;
            if has_commit { Ok(()) } else { Err(Fault::Forked) }
        })
    }

    fn found_workspace(&self, name: Uuid, rows: &mut Rows<'_>) -> Result<Option<Position>, Fault> {
        let workspace = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
        self.with_link(|link| write::found_workspace(link, &self.node, (workspace, name), rows))
    }

    fn head(&self) -> Result<Option<Head>, Fault> {
        self.with_link(read::head)
    }

    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.with_link(|link| {
            let found = link.ask(ANSWER, sql::VALUE, &[&table.name(), &key])?;
            found.map_or(Ok(None), |row| column(&row, 0))
        })
    }

    fn heartbeat(&self, position: Position, problem: Option<&str>) -> Result<Beat, Fault> {
        // Every encoding of a database has these characters.
        let problem = problem.map(|text| text.replace(|c: char| !c.is_ascii(), "?"));
        let (seq, release) = (parameter(position.seq), env!("CARGO_PKG_VERSION"));
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.node, &release, &seq, &problem];
        self.with_link(|link| {
            let statement = link.prepared(sql::HEARTBEAT)?;
            let recorded =
                link.wait_durably(ANSWER, link.client().query_one(&statement, &parameters));
            let row = recorded.map_err(|failure| failure.of_question())?;
            let seen: OffsetDateTime = column(&row, 0)?;
            let before: Option<OffsetDateTime> = column(&row, 1)?;
            Ok(Beat { seen: seen.into(), before: before.map(Into::into) })
        })
    }

    fn trim(&self, keep: u64) -> Result<(), Fault> {
        self.with_link(|link| {
            // The horizon moves first and by itself: the head is not locked while rows are deleted, and a copy before the
            // horizon never misses the rows that it would need.
            let moved = link.ask(ANSWER, sql::ADVANCE_HORIZON, &[&parameter(keep)])?;
            let horizon: i64 = column(&moved.ok_or_else(no_workspace)?, 0)?;
            let client = link.client();
            let begin = format!("{}; {}", sql::BEGIN, sql::WITHOUT_LIMITS);
            link.question(LONG, async {
                client.batch_execute(&begin).await?;
                client.execute(sql::DELETE_REMOVED, &[&horizon]).await?;
                client.execute(sql::DELETE_COMMITS, &[&horizon]).await?;
                client.execute(sql::DELETE_NODES, &[]).await?;
                client.batch_execute("COMMIT").await
            })
        })
    }

    fn remember(&self, primary: Primary) {
        self.connector.remember(primary);
    }

    fn primary(&self) -> Primary {
        self.connector.primary()
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn nodes(&self) -> Result<Vec<Node>, Fault> {
        let node = |row: &Row| {
            let seen: OffsetDateTime = column(row, 3)?;
            Ok(Node {
                name: column(row, 0)?,
                release: column(row, 1)?,
                position: number(row, 2)?,
                behind: None,
                seen_at: Some(seen.into()),
                problem: column(row, 4)?,
            })
        };
        self.with_link(|link| {
            let rows = link.question(ANSWER, link.client().query(sql::NODES, &[]))?;
            rows.iter().map(node).collect()
        })
    }

    fn shown(&self) -> &str {
        &self.shown
    }
}

/// A transaction that has locked the head. Dropping it rolls the transaction back.
struct HeldTurn<'o> {
    origin: &'o Postgres,
    /// Present until the turn ends.
    link: Option<Link>,
}

impl<'o> HeldTurn<'o> {
    /// Waits for the lock, then reads what changed.
    fn begin(
        origin: &'o Postgres,
        known: Position,
        take: &mut Take<'_>,
    ) -> Result<(Position, Self), Fault> {
        let mut link = origin.link()?;
        // Both are prepared, so that each is one message, and the lock is sent first. The question begins when the head
        // is locked, and sees the state of that moment.
        let lock = link.prepared(sql::LOCK_HEAD)?;
        let since = link.prepared(sql::SINCE)?;
        let asking = async {
            let client = link.client();
            let begin = client.batch_execute(sql::BEGIN);
            let lock = client.query_opt(&lock, &[]);
            let changes = client.query_raw(&since, [parameter(known.seq)]);
            let (begun, locked, changes) = join3(begin, lock, changes).await;
            begun?;
            locked?;
            changes
        };
        let changes = link.question(ANSWER, asking)?;
        let head = read::hand_over(&link, changes, known, take)?;
        Ok((head, Self { origin, link: Some(link) }))
    }
}

fn over() -> Fault {
    Fault::Away("the turn has ended".to_owned())
}

impl Turn for HeldTurn<'_> {
    fn extend(&self) -> Result<(), Fault> {
        let link = self.link.as_ref().filter(|link| link.is_open()).ok_or_else(over)?;
        link.run(sql::LONG_WAIT)
    }

    fn commit(mut self: Box<Self>, commit: &Commit<'_>) -> Result<CommitOutcome, Fault> {
        // Without a link, or if the database has ended the session, the turn is over and nothing was sent.
        let Some(mut link) = self.link.take().filter(Link::is_open) else {
            return Ok(CommitOutcome::Overtaken);
        };
        let outcome = write::commit_in_transaction(&mut link, &self.origin.node, commit)?;
        self.origin.idle().push(link);
        Ok(outcome)
    }

    fn replace(mut self: Box<Self>, name: Uuid, rows: &mut Rows<'_>) -> Result<Position, Fault> {
        let mut link = self.link.take().filter(Link::is_open).ok_or_else(over)?;
        let position = write::replace(&mut link, &self.origin.node, name, rows)?;
        self.origin.idle().push(link);
        Ok(position)
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link.take()
            && link.run("ROLLBACK").is_ok()
        {
            self.origin.idle().push(link);
        }
    }
}
