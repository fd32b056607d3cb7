//! PostgreSQL for the rows of a shared database: a server that syncs its commits, and what a client can reach with it.

use std::future::Future;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::machine::filesystem;
use crate::postgres::{Server, path_with_server};
use crate::{Context, Result, progress};

/// The settings with which the service's sessions plan statements.
const SESSION: &str =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

/// The size of the row that [`Connection::single_commits`] commits, in bytes.
const ROW: usize = 200;

/// Starts a server on the core of this thread. Returns `None`, and says why, if these rows cannot be measured here.
pub fn start(rows: &str) -> Result<Option<Server>> {
    let left_out = |why: &str| {
        progress(&format!("rows {rows} are left out: {why}"));
        Ok(None)
    };
    let mut command = Command::new("initdb");
    let answer = command.arg("--version").env("PATH", path_with_server()).output();
    if !answer.is_ok_and(|answer| answer.status.success()) {
        return left_out("they need PostgreSQL (apt install postgresql)");
    }
    let server = Server::start(&["fsync = on", "synchronous_commit = on"], "");
    match filesystem(server.folder())?.as_str() {
        "tmpfs" | "ramfs" => {
            left_out("PostgreSQL's data would lie in memory; TMPDIR names another folder")
        }
        _ => Ok(Some(server)),
    }
}

/// A blocking connection. It works on the core of the calling thread.
pub struct Connection {
    runtime: Runtime,
    client: Client,
}

impl Connection {
    /// Connects, with the settings of the service's sessions.
    pub fn open(url: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("a runtime")?;
        let connecting = async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            Ok::<_, tokio_postgres::Error>(client)
        };
        let client = runtime.block_on(connecting).context("connecting to PostgreSQL")?;
        let connection = Self { runtime, client };
        connection.run(SESSION)?;
        Ok(connection)
    }

    /// Waits for the answer of the server.
    fn wait<T>(
        &self,
        work: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let reason = |error: tokio_postgres::Error| {
            error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
        };
        self.runtime.block_on(work).map_err(reason).context("PostgreSQL")
    }

    /// Runs statements in one transaction.
    pub fn run(&self, sql: &str) -> Result<()> {
        self.wait(self.client.batch_execute(sql))
    }

    /// Prepares a statement.
    pub fn prepare(&self, sql: &str) -> Result<Statement> {
        self.wait(self.client.prepare(sql))
    }

    /// Runs a prepared statement.
    pub fn query(
        &self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        self.wait(self.client.query(statement, parameters))
    }

    /// Returns the median time of `SELECT 1`. Takes about `time`.
    pub fn round_trip(&self, time: Duration) -> Result<Duration> {
        let statement = self.prepare("SELECT 1")?;
        let begin = Instant::now();
        let mut trips = Vec::new();
        while begin.elapsed() < time {
            let asked = Instant::now();
            self.query(&statement, &[])?;
            trips.push(asked.elapsed());
        }
        trips.sort_unstable();
        Ok(trips.get(trips.len() / 2).copied().unwrap_or_default())
    }

    /// Returns the time to receive all rows of a workspace by `COPY`.
    pub fn copy_rows(&self) -> Result<Duration> {
        let begin = Instant::now();
        self.wait(async {
            let copied =
                self.client.copy_out("COPY steward_rows TO STDOUT (FORMAT binary)").await?;
            copied.try_for_each(|_| std::future::ready(Ok(()))).await
        })?;
        Ok(begin.elapsed())
    }

    /// Returns how many rows of [`ROW`] bytes can be inserted a second, each in a commit of its own. Takes about `time`.
    pub fn single_commits(&self, time: Duration) -> Result<f64> {
        self.run(
            "CREATE TABLE IF NOT EXISTS single_commits
               (number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v bytea NOT NULL)",
        )?;
        let statement = self.prepare("INSERT INTO single_commits (v) VALUES ($1)")?;
        let row = vec![7_u8; ROW];
        let begin = Instant::now();
        let mut commits = 0_u64;
        while begin.elapsed() < time {
            self.query(&statement, &[&row])?;
            commits += 1;
        }
        Ok(commits as f64 / begin.elapsed().as_secs_f64())
    }
}
