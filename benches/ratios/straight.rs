//! The rows of creates, put straight into PostgreSQL by one writer: the rate of a service that would cost nothing itself.

use std::collections::BTreeMap;
use std::time::Instant;

use steward::testing::store::Table;
use tokio_postgres::Statement;
use uuid::Uuid;

use crate::database::Connection;
use crate::postgres::Schema;
use crate::{Context, Result, fail};

/// The number of creates whose rows are recorded.
pub const RECORDED: u64 = 8_192;

/// About as many creates are in one commit.
const BATCH: usize = 64;

/// The statement with which the service commits, without the version of the format.
const COMMIT: &str = "WITH
  moved AS (UPDATE steward_head SET seq = seq + 1, name = $6 WHERE id = 1 AND seq = $4 AND name = $5 RETURNING seq),
  kept AS (INSERT INTO steward_commits SELECT seq, $6, 'straight', now() FROM moved),
  put AS (INSERT INTO steward_rows SELECT t, k, v, moved.seq
          FROM moved, unnest($1::text[], $2::bytea[], $3::bytea[]) r(t, k, v)
          ON CONFLICT (tab, k) DO UPDATE SET v = EXCLUDED.v, seq = EXCLUDED.seq)
  SELECT seq FROM moved";

/// Restores the rows from before the recorded creates.
const RESET: &str = "TRUNCATE steward_rows; INSERT INTO steward_rows SELECT * FROM rows_before";

/// The last values of changed rows, by table and key.
type Changes = BTreeMap<(String, Vec<u8>), Option<Vec<u8>>>;

/// The rows of one commit, as parameters of [`COMMIT`].
struct Batch {
    tables: Vec<String>,
    keys: Vec<Vec<u8>>,
    values: Vec<Option<Vec<u8>>>,
}

/// The rows of recorded creates, and a connection to tables that are like the service's.
pub struct Straight<'c> {
    connection: &'c Connection,
    commit: Statement,
    batches: Vec<Batch>,
    /// The number and the name of the last commit.
    head: (i64, Uuid),
}

impl<'c> Straight<'c> {
    /// Records all rows that the service puts into the schema `shared` while `create` creates [`RECORDED`] dashboards.
    /// `connection` uses the schema `own`, which gets tables of the same form.
    pub fn record(
        connection: &'c Connection,
        own: &Schema,
        shared: &Schema,
        create: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let (own, shared) = (own.name(), shared.name());
        connection.run(&tables_like(shared))?;
        connection.run(&begin_recording(own, shared))?;
        create()?;
        connection.run(&format!("DROP TRIGGER record ON {shared}.steward_rows"))?;
        let batches = batches(connection)?;
        let head = connection.prepare("SELECT seq, name FROM steward_head")?;
        let head = connection.query(&head, &[])?;
        let head = head.first().ok_or("the database has no head")?;
        let head = (head.try_get(0).context("the head")?, head.try_get(1).context("the head")?);
        let commit = connection.prepare(COMMIT)?;
        Ok(Self { connection, commit, batches, head })
    }

    /// Returns the mean number of rows in a commit.
    pub fn rows_of_a_commit(&self) -> f64 {
        let rows: usize = self.batches.iter().map(|batch| batch.keys.len()).sum();
        rows as f64 / self.batches.len() as f64
    }

    /// Returns the mean number of creates in a commit.
    pub fn creates_of_a_commit(&self) -> f64 {
        RECORDED as f64 / self.batches.len() as f64
    }

    /// Puts the rows of all recorded creates. Returns the number of creates a second.
    pub fn put_all(&mut self) -> Result<f64> {
        self.connection.run(RESET)?;
        let begin = Instant::now();
        for Batch { tables, keys, values } in &self.batches {
            let (seq, name) = self.head;
            let next = Uuid::from_u128(rand::random());
            let moved =
                self.connection.query(&self.commit, &[tables, keys, values, &seq, &name, &next])?;
            let moved = moved.first().ok_or("another writer has moved the head")?;
            self.head = (moved.try_get(0).context("the head")?, next);
        }
        Ok(RECORDED as f64 / begin.elapsed().as_secs_f64())
    }
}

/// Returns statements that create tables like those in the schema `shared`. `LIKE` does not copy the settings of a table.
fn tables_like(shared: &str) -> String {
    format!(
        "CREATE TABLE steward_head (LIKE {shared}.steward_head INCLUDING ALL) WITH (fillfactor = 10);
         CREATE TABLE steward_commits (LIKE {shared}.steward_commits INCLUDING ALL);
         CREATE TABLE steward_rows (LIKE {shared}.steward_rows INCLUDING ALL)
           WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);
         INSERT INTO steward_head SELECT * FROM {shared}.steward_head"
    )
}

/// Returns statements that keep the rows of the schema `shared`, and record each change to them from then on.
fn begin_recording(own: &str, shared: &str) -> String {
    format!(
        "CREATE TABLE rows_before AS SELECT * FROM {shared}.steward_rows;
         CREATE TABLE recorded (seq int8 NOT NULL, tab text NOT NULL, k bytea NOT NULL, v bytea);
         CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
           INSERT INTO {own}.recorded VALUES (NEW.seq, NEW.tab, NEW.k, NEW.v);
           RETURN NULL;
         END $$;
         CREATE TRIGGER record AFTER INSERT OR UPDATE ON {shared}.steward_rows
           FOR EACH ROW EXECUTE FUNCTION record()"
    )
}

/// Returns the recorded rows in commits of about [`BATCH`] creates. The service's own commits are often smaller.
fn batches(connection: &Connection) -> Result<Vec<Batch>> {
    let recorded = connection.prepare("SELECT seq, tab, k, v FROM recorded ORDER BY seq")?;
    let mut commits: BTreeMap<i64, Changes> = BTreeMap::new();
    for row in connection.query(&recorded, &[])? {
        let what = "a recorded row";
        let key = (row.try_get(1).context(what)?, row.try_get(2).context(what)?);
        let commit = commits.entry(row.try_get(0).context(what)?).or_default();
        commit.insert(key, row.try_get(3).context(what)?);
    }
    let creates_in = |changes: &Changes| {
        changes.keys().filter(|(table, _)| table == Table::Dashboards.name()).count()
    };
    let (mut batches, mut batch, mut creates) = (Vec::new(), Changes::new(), 0);
    let mut all = 0;
    for changes in commits.into_values() {
        let added = creates_in(&changes);
        if creates > 0 && creates + added / 2 > BATCH {
            batches.push(Batch::of(std::mem::take(&mut batch)));
            creates = 0;
        }
        batch.extend(changes);
        (creates, all) = (creates + added, all + added as u64);
    }
    batches.push(Batch::of(batch));
    if all == RECORDED {
        Ok(batches)
    } else {
        fail(format!("the rows of {all} creates were recorded, not of {RECORDED}"))
    }
}

impl Batch {
    fn of(changes: Changes) -> Self {
        let mut batch = Self { tables: Vec::new(), keys: Vec::new(), values: Vec::new() };
        for ((table, key), value) in changes {
            batch.tables.push(table);
            batch.keys.push(key);
            batch.values.push(value);
        }
        batch
    }
}
