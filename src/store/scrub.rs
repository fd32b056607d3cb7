//! `scrub`: the checks of `check` that need no copy of the file, done slowly while the server runs.
//!
//! A held snapshot keeps the pages that commits free. So the scrub reads the file in slices, each from its own snapshot.
//! A record is compared with its index entries, and an entry with its record, within one slice. Counts, sums and the
//! lengths of tables are added up over all slices and corrected by what commits change meanwhile ([`change_feed`]).
//!
//! [`change_feed`]: super::change_feed

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::low_priority::{Priority, run_low_priority};

use super::Store;
use super::change_feed::{ChangeWatch, CommittedChange};
use super::check::{count_problem, report_errors};
use super::check_report::CheckReport;
use super::engine::RETRY_AFTER;
use super::expected_counts::ExpectedCounts;
use super::key::Key;
use super::packed::{Entry, unpack};
use super::per_table::PerTable;
use super::record_registry::{RecordRegistry, RecordType};
use super::schema::Table;
use super::sealed::{HexKey, unseal};
use super::shared::Shared;
use super::snapshot::Snapshot;

/// How fast a scrub reads.
#[derive(Debug, Clone, Copy)]
pub struct ScrubPace {
    /// The time after which a slice ends. A slice reads at least one value.
    pub slice: Duration,
    /// The pause between two slices.
    pub pause: Duration,
}

impl Default for ScrubPace {
    /// The file grows by what commits free during a slice, so a slice is short.
    fn default() -> Self {
        Self { slice: Duration::from_millis(50), pause: Duration::from_millis(50) }
    }
}

impl Store {
    /// Reads the whole file in slices, with pauses and on a thread of low priority. Verifies checksums, indexes,
    /// counts, references, and that a lookup finds every key. Reads from the page cache when possible. Unlike
    /// [`check`](Store::check) it delays no write.
    ///
    /// # Errors
    /// 503 when the file cannot be read, or is opened again meanwhile.
    #[doc(hidden)]
    pub async fn scrub(&self, registry: RecordRegistry, pace: ScrubPace) -> Result<CheckReport> {
        let shared = Arc::clone(&self.shared);
        let turn = Arc::clone(&shared.changes.turn).lock_owned().await;
        let generation = self.snapshot()?.generation();
        let changes = Arc::clone(&shared.changes);
        let watch = self.quiesce(move || ChangeWatch::begin(changes)).await?;
        let walk = move || {
            let _under_way = turn;
            Scrub::new(&registry, (shared, watch), generation, pace).run()
        };
        run_low_priority(Priority::Upkeep, walk).await?.require_complete()
    }
}

/// What a table contains.
#[derive(Clone, Copy)]
enum Content<'r> {
    Records(&'r dyn RecordType),
    /// The entries of indexes over these records.
    Entries(&'r dyn RecordType),
    Counts,
    Other,
}

/// Returns the tables in the order in which the scrub reads them: counts last, when all records are added up.
fn tables(registry: &RecordRegistry) -> Vec<(Table, Content<'_>)> {
    let mut contents = PerTable::new(|| Content::Other);
    *contents.slot_mut(Table::Counts) = Content::Counts;
    for kind in &registry.record_types {
        for table in kind.tables() {
            *contents.slot_mut(table) = Content::Entries(*kind);
        }
        *contents.slot_mut(kind.table()) = Content::Records(*kind);
    }
    let others = Table::ALL.iter().filter(|table| **table != Table::Counts);
    let in_order = others.chain([&Table::Counts]);
    in_order.map(|table| (*table, *contents.slot(*table))).collect()
}

/// A scrub under way.
struct Scrub<'r> {
    registry: &'r RecordRegistry,
    shared: Arc<Shared>,
    watch: ChangeWatch,
    /// The opening of the file at the beginning.
    generation: u64,
    pace: ScrubPace,
    tables: Vec<(Table, Content<'r>)>,
    /// The place of each table in `tables`.
    ranks: PerTable<usize>,
    /// The place of the table that is read.
    rank: usize,
    /// The last key of that table that was read.
    last: Option<Vec<u8>>,
    /// How many keys the read part of that table has.
    keys: u64,
    /// The counts and sums of all records in the part that was read, except the counts that were compared.
    expected: ExpectedCounts,
    /// Whether counts and lengths can be compared: no change is missing.
    is_exact: bool,
}

impl<'r> Scrub<'r> {
    fn new(
        registry: &'r RecordRegistry,
        (shared, watch): (Arc<Shared>, ChangeWatch),
        generation: u64,
        pace: ScrubPace,
    ) -> Self {
        let tables = tables(registry);
        let mut ranks = PerTable::new(|| 0);
        for (rank, (table, _)) in tables.iter().enumerate() {
            *ranks.slot_mut(*table) = rank;
        }
        Self {
            registry,
            shared,
            watch,
            generation,
            pace,
            tables,
            ranks,
            rank: 0,
            last: None,
            keys: 0,
            expected: ExpectedCounts::default(),
            is_exact: true,
        }
    }

    fn run(mut self) -> CheckReport {
        let mut report = CheckReport::default();
        for (rank, (table, content)) in self.tables.clone().into_iter().enumerate() {
            (self.rank, self.last, self.keys) = (rank, None, 0);
            report_errors(table, &mut report, |report| self.read_table(table, content, report));
        }
        if !self.is_exact {
            tracing::warn!("counts were not compared: too many changes during a slice");
        }
        report
    }

    fn read_table(
        &mut self,
        table: Table,
        content: Content<'_>,
        report: &mut CheckReport,
    ) -> Result<()> {
        loop {
            let tx = self.begin_slice(table)?;
            let from = self.last.clone();
            let is_at_end = self.read_slice(&tx, table, content, report)?;
            if matches!(content, Content::Counts) && self.is_exact {
                self.require_no_more(from.as_deref(), is_at_end, report);
            }
            if is_at_end {
                let length = tx.len(table)?;
                if self.is_exact && length != self.keys {
                    let found = self.keys;
                    let what = format_args!("{found} keys, but the table's length is {length}");
                    report.problem(table, what);
                }
                return Ok(());
            }
            drop(tx);
            std::thread::sleep(self.pace.pause);
        }
    }

    /// Returns the current state of the file, after correcting what was added up to match that state.
    fn begin_slice(&mut self, table: Table) -> Result<Arc<Snapshot>> {
        let (snapshot, changes) = self.watch.next_state(table, || self.shared.snapshot.load_full());
        let same = snapshot.filter(|snapshot| snapshot.generation() == self.generation);
        let snapshot = same.ok_or_else(|| {
            Error::unavailable(RETRY_AFTER, "the data file was closed during the check")
        })?;
        match changes {
            Some(changes) => changes.iter().for_each(|change| self.correct(change)),
            None => self.is_exact = false,
        }
        Ok(snapshot)
    }

    /// Adds a change of a value that was read before. A value that was not read yet will be read changed.
    fn correct(&mut self, change: &CommittedChange) {
        let rank = *self.ranks.slot(change.table);
        let is_read = |key: &[u8]| self.last.as_deref().is_some_and(|last| key <= last);
        if rank > self.rank || (rank == self.rank && !is_read(&change.key)) {
            return;
        }
        match &change.count {
            None if rank == self.rank => {
                self.keys = self.keys.saturating_add_signed(change.delta);
            }
            None => {}
            Some(count) => {
                let is_compared = self.ranks.slot(Table::Counts) == &self.rank && is_read(count);
                if !is_compared {
                    self.expected.change(count, change.delta);
                }
            }
        }
    }

    /// Reads values until the time of the slice is over. Returns whether the table has no more.
    fn read_slice(
        &mut self,
        tx: &Snapshot,
        table: Table,
        content: Content<'_>,
        report: &mut CheckReport,
    ) -> Result<bool> {
        let begun = Instant::now();
        let after = self.last.clone();
        let mut is_at_end = true;
        tx.each_sealed_after(table, after.as_deref(), &mut |key, sealed| {
            if table.is_packed() {
                let has_new = self.read_block(tx, (table, content), (key, sealed), report)?;
                is_at_end = !has_new || begun.elapsed() < self.pace.slice;
                let flow =
                    if is_at_end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
                return Ok(flow);
            }
            report.count_value();
            if self.last.as_deref().is_some_and(|last| key <= last) {
                // The walk would not end if a slice began again before such a key.
                report.problem(table, format_args!("the key {} is not in order", HexKey(key)));
                return Ok(ControlFlow::Break(()));
            }
            if !tx.has(table, key)? {
                let what = format_args!("the key {} cannot be found by a lookup", HexKey(key));
                report.problem(table, what);
            }
            self.read_value(tx, (table, content), (key, unseal(table, key, sealed)), report)?;
            self.keys += 1;
            self.last = Some(key.to_vec());
            if begun.elapsed() < self.pace.slice {
                return Ok(ControlFlow::Continue(()));
            }
            is_at_end = false;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(is_at_end)
    }

    /// Reads those entries of a block that were not read yet. Returns whether there are any. A block may have grown beyond
    /// the last entry that was read, and its key may then be known.
    fn read_block(
        &mut self,
        tx: &Snapshot,
        (table, content): (Table, Content<'_>),
        (key, sealed): (&[u8], &[u8]),
        report: &mut CheckReport,
    ) -> Result<bool> {
        let last = self.last.clone();
        let is_new = |key: &[u8]| last.as_deref().is_none_or(|last| key > last);
        if is_new(key) {
            self.keys += 1;
            if !tx.has(table, key)? {
                let what = format_args!("the key {} cannot be found by a lookup", HexKey(key));
                report.problem(table, what);
            }
        }
        match unseal(table, key, sealed).and_then(|block| unpack(table, key, block)) {
            Ok(mut entries) => {
                entries.retain(|entry| is_new(&entry.key));
                for Entry { key, payload } in &entries {
                    report.count_value();
                    self.read_value(tx, (table, content), (key, Ok(payload)), report)?;
                }
                let Some(end) = entries.pop() else { return Ok(false) };
                self.last = Some(end.key);
            }
            Err(error) if is_new(key) => {
                report.count_value();
                self.read_value(tx, (table, content), (key, Err(error)), report)?;
                self.last = Some(key.to_vec());
            }
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    fn read_value(
        &mut self,
        tx: &Snapshot,
        (table, content): (Table, Content<'_>),
        (key, payload): (&[u8], Result<&[u8]>),
        report: &mut CheckReport,
    ) -> Result<()> {
        match (content, payload) {
            (Content::Records(kind), payload) => {
                let is_pending = self.registry.is_pending;
                kind.check_record(tx, is_pending, (key, payload), &mut self.expected, report)
            }
            (Content::Entries(kind), Ok(payload)) => {
                kind.check_entry(tx, table, (key, payload), report)
            }
            (Content::Counts, Ok(mut payload)) => {
                self.compare(key, u64::read(&mut payload), report);
                Ok(())
            }
            (Content::Other, Ok(_)) => Ok(()),
            (content, Err(error)) => {
                if matches!(content, Content::Counts) {
                    self.expected.take(key);
                }
                report.problem(table, error);
                Ok(())
            }
        }
    }

    fn compare(&mut self, key: &[u8], stored: Option<u64>, report: &mut CheckReport) {
        let counted = self.expected.take(key);
        if self.is_exact && (stored.is_none() || stored != counted) {
            count_problem(key, Some(stored.unwrap_or(0)), counted.unwrap_or(0), report);
        }
    }

    /// Reports the expected counts that the slice after `from` did not find.
    fn require_no_more(&mut self, from: Option<&[u8]>, is_at_end: bool, report: &mut CheckReport) {
        let until = if is_at_end { None } else { self.last.as_deref() };
        for (key, counted) in self.expected.take_between(from, until) {
            count_problem(&key, None, counted, report);
        }
    }
}
