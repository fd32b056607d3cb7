//! What copies are made from, taking rows into a copy, which rows this release can take, and the values of a file as rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redb::{Database, WriteTransaction};

use crate::base::error::Result;
use crate::store::disk::engine::{begin, storage_error};
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::payload::unseal;
use crate::store::values::position::{OriginRow, Position};
use crate::store::values::schema::{FORMAT, TABLES_KEY, Table};
use crate::store::write::WriteTx;

use super::state::{OriginState, OriginStats};
use super::{Fault, Lacking, Origin, Take, Turn};

/// How often a copy that takes many rows logs how many it has taken.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// What a copy is made from. The threads of its store share it.
pub struct CopySource {
    pub origin: Arc<dyn Origin>,
    pub state: OriginState,
    /// What the store counts of its work with the origin.
    pub stats: OriginStats,
    /// Set when the store closes: it does not wait until a copy has many rows.
    is_closing: AtomicBool,
}

impl CopySource {
    /// Returns what copies of `origin` are made from.
    pub fn new(origin: Arc<dyn Origin>) -> Self {
        let (state, stats) = (OriginState::default(), OriginStats::default());
        Self { origin, state, stats, is_closing: AtomicBool::new(false) }
    }

    /// Calls `take` with what a copy at `known` lacks, however much that is, and returns the last commit.
    ///
    /// # Errors
    /// [`Fault::Outdated`] if the copy is made again sooner.
    pub fn since_far(&self, known: Position, take: &mut Take<'_>) -> Result<Position, Fault> {
        let lacking = self.origin.lacking(known)?;
        if lacking.rows > lacking.of / 2 {
            return Err(Fault::Outdated(lacking));
        }
        let Lacking { rows, of } = lacking;
        tracing::warn!(
            rows,
            of,
            "the copy lacks many rows of the database; it takes them before this node serves again"
        );
        let mut taken = TakenRows::new();
        let head = self.origin.since_far(known, &mut |row| {
            self.require_open()?;
            taken.count();
            take(row)
        })?;
        tracing::info!(rows = taken.rows, seq = head.seq, "the copy has what it lacked");
        Ok(head)
    }

    /// Calls `take` with all rows, and returns the last commit.
    pub fn all(&self, take: &mut Take<'_>) -> Result<Position, Fault> {
        let mut taken = TakenRows::new();
        self.origin.since(Position::NONE, &mut |row| {
            self.require_open()?;
            taken.count();
            take(row)
        })
    }

    /// Ends what takes many rows.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    fn require_open(&self) -> Result<(), Fault> {
        if self.is_closing.load(Ordering::Acquire) {
            return Err(Fault::Away("this node stops".to_owned()));
        }
        Ok(())
    }
}

/// Counts the rows that a copy takes, and logs the number every few seconds.
struct TakenRows {
    rows: u64,
    logged_at: Instant,
}

impl TakenRows {
    fn new() -> Self {
        Self { rows: 0, logged_at: Instant::now() }
    }

    fn count(&mut self) {
        self.rows += 1;
        // Reading the clock for each row would take longer than the row.
        if self.rows.is_multiple_of(256) && self.logged_at.elapsed() >= PROGRESS_INTERVAL {
            self.logged_at = Instant::now();
            tracing::info!(rows = self.rows, "taking rows of the database into the copy");
        }
    }
}

/// Takes the turn, and into a new file at `known` what it lacks. What other nodes commit meanwhile is taken before the turn if
/// it is much. Returns the last commit.
pub fn take_turn<'s>(
    database: &Database,
    source: &'s CopySource,
    mut known: Position,
) -> Result<(Position, Box<dyn Turn + 's>), Fault> {
    loop {
        match take_rows(database, |take| source.origin.turn(known, take), |_, _| Ok(())) {
            Err(Fault::Behind) => {
                let ask = |take: &mut Take<'_>| source.origin.since_far(known, take);
                known = take_rows(database, ask, |_, _| Ok(()))?;
            }
            taken => return taken,
        }
    }
}

/// Stores a row of the origin in a copy, once the batch is applied.
///
/// # Errors
/// [`Fault::Newer`] if the row says that the origin has tables of a newer release, and [`Fault::Copy`] if it is damaged or the
/// copy fails.
pub fn take_row(tx: &mut WriteTx<'_>, row: OriginRow) -> Result<(), Fault> {
    if row.table == Table::Meta && row.key == TABLES_KEY && !names_known_tables(&row)? {
        return Err(Fault::Newer { found: FORMAT });
    }
    Ok(tx.take_row(row)?)
}

/// Whether this release knows all tables that the row names.
fn names_known_tables(row: &OriginRow) -> Result<bool> {
    let Some(sealed) = &row.sealed else { return Ok(true) };
    let names = String::from_utf8_lossy(unseal(row.table, &row.key, sealed)?);
    Ok(names.split('\n').all(|name| Table::with_name(name).is_some()))
}

/// Takes the rows that `ask` hands over, in one transaction, which `end` completes. Returns what `ask` returned.
pub fn take_rows<T>(
    database: &Database,
    ask: impl FnOnce(&mut Take<'_>) -> Result<T, Fault>,
    end: impl FnOnce(&WriteTransaction, &T) -> Result<()>,
) -> Result<T, Fault> {
    let transaction = begin(database)?;
    let mut tx = WriteTx::new(&transaction);
    tx.open_tables()?;
    let answer = ask(&mut |row| take_row(&mut tx, row))?;
    tx.finish()?;
    end(&transaction, &answer)?;
    transaction.commit().map_err(storage_error)?;
    Ok(answer)
}

/// Returns all values of a snapshot as rows.
pub fn stored_rows(snapshot: &Snapshot) -> impl Iterator<Item = Result<OriginRow>> {
    Table::ALL.iter().flat_map(move |table| {
        let rows = snapshot.rows(*table);
        let unreadable = rows.as_ref().err().cloned().map(Err);
        rows.into_iter().flatten().chain(unreadable)
    })
}
