//! `check`: verifies that the data file is consistent.
//!
//! Copies all values to an unnamed file, and looks up each key meanwhile. Then verifies every checksum, every index against its
//! table, every count and every reference of the copy. So the file has no long snapshot, which would make it grow. Then redb
//! checks its own structure on a copy of the bytes. The copy of a shared database is compared with that.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{Database, DatabaseError};

use crate::base::error::{Error, Result};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::store::changes::file_copy::{fill, open_unnamed};
use crate::store::changes::value_log::Visitor;
use crate::store::disk::engine::{DEFAULT_CACHE, begin_unsynced, catch_panic, unavailable};
use crate::store::disk::file::builder;
use crate::store::disk::file_names::folder_of;
use crate::store::disk::file_system::{FileReader, FsHandle, unnamed_file};
use crate::store::kinds::record_registry::{ExpectedCounts, RecordRegistry, check_records};
use crate::store::reads::report::{CheckReport, Progress, Steps, check_sums};
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::key::Key;
use crate::store::values::payload::HexKey;
use crate::store::values::schema::Table;
use crate::store::writer::Store;

use super::sliced_walk::SlicedWalk;

fn check_counts(
    tx: &Snapshot,
    mut expected: ExpectedCounts,
    report: &mut CheckReport,
) -> Result<()> {
    check_sums(tx, Table::Counts, report)?;
    tx.each(Table::Counts, &mut |key, payload| {
        let counted = expected.take(key);
        if let Some(stored) = payload.ok().map(|mut payload| u64::read(&mut payload))
            && (stored.is_none() || stored != counted)
        {
            count_problem(key, Some(stored.unwrap_or(0)), counted.unwrap_or(0), report);
        }
        Ok(())
    })?;
    for (key, counted) in expected.into_rest() {
        count_problem(&key, None, counted, report);
    }
    Ok(())
}

/// Reports a count that is not `counted`; `stored` is `None` if it is missing.
fn count_problem(key: &[u8], stored: Option<u64>, counted: u64, report: &mut CheckReport) {
    // The name of a table or of a sum.
    let what = String::read(&mut &*key).unwrap_or_default();
    let text = match stored {
        Some(stored) => format!("the stored count of {what} is {stored}, expected {counted}"),
        None => format!("the count of {what} is missing, expected {counted}"),
    };
    report.problem(Table::Counts, text);
}

impl Store {
    /// Checks the whole file: first all values, then redb's own structure.
    ///
    /// Writes wait while the bytes of the file are copied; reads do not.
    ///
    /// # Errors
    /// When the file is or becomes closed, cannot be read, or its folder has no space for a copy.
    #[doc(hidden)]
    pub async fn check(&self, registry: RecordRegistry, progress: Progress) -> Result<CheckReport> {
        let mut report = self.scrub(registry, progress.clone()).await?;
        let to_compare = progress.clone();
        let (fs, path) = (self.fs.clone(), self.path().to_owned());
        let copy =
            self.quiesce(move || copy_unnamed(&fs, &path)).await?.map_err(Error::internal)?;
        let walk = move || {
            let check = || {
                let backend = FileBackend::new(copy)?;
                builder(DEFAULT_CACHE).create_with_backend(backend)?.check_integrity()
            };
            check_structure(check, &progress, &mut report);
            report
        };
        let report = run_low_priority(Priority::Upkeep, walk).await?;
        self.compare(report, to_compare).await
    }

    /// Checks a copy of all values, and that a lookup finds each key in the file. Reads from the page cache when possible.
    /// Delays no write.
    ///
    /// # Errors
    /// 503 when the file is or becomes closed, cannot be read, or its folder has no space for the copy.
    #[doc(hidden)]
    pub async fn scrub(&self, registry: RecordRegistry, progress: Progress) -> Result<CheckReport> {
        let walk_begun = self.begin_walk().await;
        let walk = self.begin_sliced_walk(Table::ALL).await?;
        let folder = folder_of(self.path()).to_owned();
        let check = move || {
            let mut report = CheckReport::default();
            let mut steps = progress.begin("copying", walk.of);
            let database = open_unnamed(unnamed_file(&folder).map_err(unavailable)?)?;
            let copying = begin_unsynced(&database)?;
            let state = fill(copying, |visit| copy_values(walk, &mut steps, &mut report, visit))?;
            let copy = Snapshot::begin(&database)?;
            check_lengths(&state, &copy, &mut report);
            // The rest reads only the copy, so the file can be compacted.
            drop((state, walk_begun));
            check_snapshot(&copy, &registry, &progress, &mut report);
            Ok::<_, Error>(report)
        };
        run_low_priority(Priority::Upkeep, check).await??.require_complete()
    }
}

/// Passes on all values as they are, also damaged ones, and reports the keys that a lookup does not find. Returns the state that
/// has these values.
fn copy_values(
    walk: SlicedWalk,
    steps: &mut Steps,
    report: &mut CheckReport,
    visit: &mut Visitor<'_>,
) -> Result<Arc<Snapshot>> {
    for table in Table::ALL {
        let mut find = |state: &Snapshot, key: &[u8], _: &[u8]| {
            if !state.has(*table, key)? {
                report_lost(*table, key, report);
            }
            Ok::<_, Error>(())
        };
        let read = walk.walk_table(*table, steps, &mut find, visit)?;
        report_errors(*table, report, |_| read);
    }
    walk.finish(Table::ALL, visit)
}

/// Compares the lengths of the tables with the numbers of keys in a copy: if a branch of a tree is lost, the walk does not find
/// its keys.
fn check_lengths(state: &Snapshot, copy: &Snapshot, report: &mut CheckReport) {
    for table in Table::ALL {
        report_errors(*table, report, |report| {
            let (length, found) = (state.len(*table)?, copy.len(*table)?);
            if found != length {
                let what = format_args!("{found} keys, but the table's length is {length}");
                report.problem(*table, what);
            }
            Ok(())
        });
    }
}

/// Walks every table: first all records, then the checksums of the other tables.
fn check_snapshot(
    tx: &Snapshot,
    registry: &RecordRegistry,
    progress: &Progress,
    report: &mut CheckReport,
) {
    report.steps = progress.begin("checking", tx.values().unwrap_or(0));
    let mut counts = ExpectedCounts::default();
    let mut others = Table::ALL.to_vec();
    others.retain(|table| *table != Table::Counts);
    for kind in &registry.record_types {
        let tables = kind.tables();
        others.retain(|table| !tables.contains(table));
        let table = kind.table();
        report_errors(table, report, |found| {
            check_records(*kind, tx, registry.is_pending, &mut counts, found)
        });
    }
    report_errors(Table::Counts, report, |found| check_counts(tx, counts, found));
    for table in others {
        report_errors(table, report, |found| check_sums(tx, table, found).map(drop));
    }
}

/// Checks a file that nothing else has open: all values, a lookup of every key, and redb's own structure.
pub(super) fn check_database(
    database: &mut Database,
    registry: &RecordRegistry,
    progress: &Progress,
) -> Result<CheckReport> {
    let tx = Snapshot::begin(database)?;
    let mut report = CheckReport::default();
    check_snapshot(&tx, registry, progress, &mut report);
    report.steps = progress.begin("looking up each key", tx.values().unwrap_or(0));
    for table in Table::ALL {
        report_errors(*table, &mut report, |found| check_reachable(&tx, *table, found));
    }
    drop(tx);
    check_structure(|| database.check_integrity(), progress, &mut report);
    Ok(report)
}

/// Checks that a lookup from the root finds every key, that the keys are in order, and that their number is the
/// table's length. If a branch of the tree is lost, its keys are missing for every read.
fn check_reachable(tx: &Snapshot, table: Table, report: &mut CheckReport) -> Result<()> {
    let (mut walked, mut last) = (0, None::<Vec<u8>>);
    tx.each_sealed(table, &mut |key, _| {
        walked += 1;
        report.steps.advance();
        let follows = last.as_deref().is_none_or(|last| last < key);
        if !follows || !tx.has(table, key)? {
            report_lost(table, key, report);
        }
        last = Some(key.to_vec());
        Ok(())
    })?;
    let length = tx.len(table)?;
    if length != walked {
        report.problem(table, format_args!("{walked} keys, but the table's length is {length}"));
    }
    Ok(())
}

fn report_lost(table: Table, key: &[u8], report: &mut CheckReport) {
    report.problem(table, format_args!("the key {} cannot be found by a lookup", HexKey(key)));
}

/// Reports a table that cannot be walked to its end, and lets the check continue. redb panics on some invalid pages.
fn report_errors(
    table: Table,
    report: &mut CheckReport,
    walk: impl FnOnce(&mut CheckReport) -> Result<()>,
) {
    match catch_panic(|| walk(report)) {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            report.interrupted |= error.status() == 503;
            report.problem(table, error);
        }
        None => report.problem(table, "redb panicked while reading the table"),
    }
}

/// The buffer size of the copy, in bytes.
const COPY_BUFFER: usize = 1024 * 1024;

/// Copies the file to an unnamed file, so that nothing is left behind.
fn copy_unnamed(fs: &FsHandle, path: &Path) -> std::io::Result<File> {
    let mut copy = unnamed_file(folder_of(path))?;
    let mut file = BufReader::with_capacity(COPY_BUFFER, FileReader::open(fs, path)?);
    std::io::copy(&mut file, &mut copy)?;
    Ok(copy)
}

/// Lets redb check the structure of a file that nothing else has open.
fn check_structure(
    check: impl FnOnce() -> Result<bool, DatabaseError>,
    progress: &Progress,
    report: &mut CheckReport,
) {
    progress.begin("checking the structure", 0);
    match catch_panic(check) {
        Some(Ok(true)) => {}
        Some(Ok(false)) => {
            report.problem(Table::Meta, "redb repaired the structure of a copy of the file");
        }
        Some(Err(error)) => report.problem(Table::Meta, format_args!("redb: {error}")),
        None => report.problem(Table::Meta, "redb panicked while checking the structure"),
    }
}
