//! One connection, the runtime that drives it, and the columns of its results.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::runtime::Runtime;
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Client, Error, Row, Statement, ToStatement};

use crate::store::values::position::Primary;

use super::super::Fault;
use super::failure::{Failure, not_ours};

/// How long a statement may take. The limits of the session are shorter, so that a statement that is late there fails with
/// an error that says so.
pub(super) const ANSWER: Duration = Duration::from_secs(6);

/// How long a copy that lacks much waits for each piece of what it lacks.
pub(super) const FAR: Duration = Duration::from_mins(1);

/// How long a statement of a large transaction may take.
pub(super) const LONG: Duration = Duration::from_mins(10);

/// A connection. Its runtime runs only while a statement is under way, on the thread that waits for it.
pub(super) struct Link {
    /// Present until the link is dropped.
    runtime: Option<Runtime>,
    client: Client,
    /// The prepared statements, and their texts.
    statements: Vec<(&'static str, Statement)>,
    /// Set when the server sends a warning.
    is_warned: Arc<AtomicBool>,
    /// The server, if it says which it is.
    pub(super) primary: Primary,
}

impl Drop for Link {
    /// The last user of the store can be an async task, where a runtime must not wait for its threads.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Link {
    /// Wraps a client whose connection runs on `runtime`, and sets `is_warned` when the server sends a warning.
    pub(super) fn new(runtime: Runtime, client: Client, is_warned: Arc<AtomicBool>) -> Self {
        let (runtime, statements, primary) = (Some(runtime), Vec::new(), Primary::default());
        Self { runtime, client, statements, is_warned, primary }
    }

    /// Returns the client, for statements that [`wait`](Self::wait) runs.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the connection is open as far as this machine has noticed.
    pub(super) fn is_open(&self) -> bool {
        if let Some(runtime) = &self.runtime {
            // The runtime looks at the socket in the first step. In the second, the connection reads what came.
            let steps = async {
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
            };
            runtime.block_on(steps.boxed_local());
        }
        !self.client.is_closed()
    }

    /// Waits for `work`, at most for `limit`. If the time is up, the state of the connection is unknown: drop it.
    pub(super) fn wait<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        let mut done = None;
        self.drive(limit, async { done = Some(work.await) }.boxed_local());
        done.ok_or(Failure::Late)?.map_err(Failure::Sql)
    }

    fn drive(&self, limit: Duration, work: LocalBoxFuture<'_, ()>) {
        if let Some(runtime) = &self.runtime {
            let _ = runtime.block_on(async { tokio::time::timeout(limit, work).await });
        }
    }

    /// Does what [`wait`](Self::wait) does for work that commits. Fails if the server ends its wait for a standby: it then
    /// warns, reports success, and may lose the commit together with its machine.
    pub(super) fn wait_durably<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        self.is_warned.store(false, Ordering::Release);
        let done = self.wait(limit, work)?;
        // The warning comes before the end of the answer. Its text depends on the server's language.
        if self.is_warned.load(Ordering::Acquire) { Err(Failure::Unconfirmed) } else { Ok(done) }
    }

    /// Does what [`wait`](Self::wait) does for work whose failure leaves nothing behind.
    pub(super) fn question<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Fault> {
        self.wait(limit, work).map_err(|failure| failure.of_question())
    }

    /// Runs statements without parameters in one trip. Without a transaction of their own, they are one.
    pub(super) fn run(&self, sql: &str) -> Result<(), Fault> {
        self.question(ANSWER, self.client.batch_execute(sql))
    }

    /// Runs a statement whose result has at most one row, and waits for it at most for `limit`.
    pub(super) fn ask<S>(
        &self,
        limit: Duration,
        statement: &S,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Fault>
    where
        S: ToStatement + ?Sized,
    {
        self.question(limit, self.client.query_opt(statement, parameters))
    }

    /// Returns the prepared statement. The first call prepares it.
    pub(super) fn prepared(&mut self, sql: &'static str) -> Result<Statement, Fault> {
        if let Some((_, statement)) = self.statements.iter().find(|(known, _)| *known == sql) {
            return Ok(statement.clone());
        }
        let statement = self.question(ANSWER, self.client.prepare(sql))?;
        self.statements.push((sql, statement.clone()));
        Ok(statement)
    }
}

/// Returns a column.
///
/// # Errors
/// [`Fault::Refused`] if the column has another type.
pub(super) fn column<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, Fault> {
    row.try_get(at).map_err(|error| not_ours(&error.to_string()))
}

/// Returns a column with a number that is not negative.
pub(super) fn number(row: &Row, at: usize) -> Result<u64, Fault> {
    let found: i64 = column(row, at)?;
    u64::try_from(found).map_err(|_| not_ours("a number is negative"))
}

/// Returns a number for a parameter. Numbers of commits never grow so large that they do not fit.
pub(super) fn parameter(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
