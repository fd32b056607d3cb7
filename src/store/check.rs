//! `check`: verifies that the data file is consistent.
//!
//! Walks one snapshot and verifies every checksum, every index against its table, every count and every reference.
//! Then redb checks its own structure on a temporary copy of the file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use redb::Database;

use crate::error::{Error, Result};

use super::check_report::{CheckReport, MAX_REPORTED, check_sums};
use super::expected_counts::ExpectedCounts;
use super::file::{builder, folder_of};
use super::file_system::{FileReader, FsHandle};
use super::key::Key;
use super::panics::catch_panic;
use super::progress::Progress;
use super::record_registry::RecordRegistry;
use super::schema::Table;
use super::sealed::HexKey;
use super::snapshot::Snapshot;
use super::{DEFAULT_CACHE, Store};
use crate::low_priority::{Priority, run_low_priority};

fn check_counts(
    tx: &Snapshot,
    mut expected: ExpectedCounts,
    report: &mut CheckReport,
) -> Result<()> {
    check_sums(tx, Table::Counts, report)?;
    tx.each(Table::Counts, &mut |key, payload| {
        let Some(stored) = payload.ok().map(|mut payload| u64::read(&mut payload)) else {
            expected.0.remove(key);
            return Ok(());
        };
        let counted = expected.0.remove(key);
        if stored.is_none() || stored != counted {
            let (what, stored, counted) =
                (counted_name(key), stored.unwrap_or(0), counted.unwrap_or(0));
            let text = format_args!("the stored count of {what} is {stored}, expected {counted}");
            report.problem(Table::Counts, text);
        }
        Ok(())
    })?;
    for (key, counted) in expected.0 {
        let text = format!("the count of {} is missing, expected {counted}", counted_name(&key));
        report.problem(Table::Counts, text);
    }
    Ok(())
}

/// Returns what a count is of: the name of a table or of a sum.
fn counted_name(key: &[u8]) -> String {
    String::read(&mut &*key).unwrap_or_default()
}

impl Store {
    /// Checks the whole file: first all records, then the checksums of the other tables, then redb's own structure.
    ///
    /// Writes wait while the bytes of the file are copied; reads do not.
    ///
    /// # Errors
    /// When the file is or becomes closed, cannot be read, or its folder has no space for the copy.
    #[doc(hidden)]
    pub async fn check(&self, registry: RecordRegistry, progress: Progress) -> Result<CheckReport> {
        let (walk_begun, snapshot) = self.begin_walk().await?;
        let walk_progress = progress.clone();
        let walk = move || {
            let _under_way = walk_begun;
            check_snapshot(&snapshot, &registry, &walk_progress)
        };
        let mut report = run_low_priority(Priority::Upkeep, walk).await?.require_complete()?;
        let (fs, path) = (self.fs.clone(), self.path().to_owned());
        let copy =
            self.quiesce(move || copy_unnamed(&fs, &path)).await?.map_err(Error::internal)?;
        let walk = move || {
            match catch_panic(|| builder(DEFAULT_CACHE).create_file(copy)) {
                Some(Ok(mut database)) => check_structure(&mut database, &progress, &mut report),
                Some(Err(error)) => report.problem(Table::Meta, format_args!("redb: {error}")),
                None => report.problem(Table::Meta, "redb panicked while checking the structure"),
            }
            report
        };
        run_low_priority(Priority::Upkeep, walk).await
    }
}

/// Walks every table: first all records, then the checksums of the other tables, then a lookup of every key.
pub(super) fn check_snapshot(
    tx: &Snapshot,
    registry: &RecordRegistry,
    progress: &Progress,
) -> CheckReport {
    let of = tx.values().unwrap_or(0);
    let steps = progress.begin("checking", of);
    let mut report = CheckReport { steps, ..CheckReport::default() };
    let mut counts = ExpectedCounts::default();
    let mut others = Table::ALL.to_vec();
    others.retain(|table| *table != Table::Counts);
    for kind in &registry.record_types {
        let tables = kind.tables();
        others.retain(|table| !tables.contains(table));
        let table = kind.table();
        report_errors(table, &mut report, |found| {
            kind.check(tx, registry.is_pending, &mut counts, found)
        });
    }
    report_errors(Table::Counts, &mut report, |found| check_counts(tx, counts, found));
    for table in others {
        report_errors(table, &mut report, |found| check_sums(tx, table, found).map(drop));
    }
    report.steps = progress.begin("looking up each key", of);
    for table in Table::ALL {
        report_errors(*table, &mut report, |found| check_reachable(tx, *table, found));
    }
    report
}

/// Checks that a lookup from the root finds every key, that the keys are in order, and that their number is the
/// table's length. If a branch of the tree is lost, its keys are missing for every read.
fn check_reachable(tx: &Snapshot, table: Table, report: &mut CheckReport) -> Result<()> {
    let (mut walked, mut last) = (0, None::<Vec<u8>>);
    let mut astray = Vec::new();
    tx.each_sealed(table, &mut |key, _| {
        walked += 1;
        report.steps.advance();
        let follows = last.as_deref().is_none_or(|last| last < key);
        if astray.len() < MAX_REPORTED && (!follows || !tx.has(table, key)?) {
            astray.push(HexKey(key).to_string());
        }
        last = Some(key.to_vec());
        Ok(())
    })?;
    for key in astray {
        report.problem(table, format_args!("the key {key} cannot be found by a lookup"));
    }
    let length = tx.len(table)?;
    if length != walked {
        report.problem(table, format_args!("{walked} keys, but the table's length is {length}"));
    }
    Ok(())
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
    let mut copy = tempfile::tempfile_in(folder_of(path))?;
    std::io::copy(
        &mut BufReader::with_capacity(COPY_BUFFER, FileReader::open(fs, path)?),
        &mut copy,
    )?;
    Ok(copy)
}

/// Lets redb check the structure of a file that nothing else has open.
pub(super) fn check_structure(
    database: &mut Database,
    progress: &Progress,
    report: &mut CheckReport,
) {
    progress.begin("checking the structure", 0);
    match catch_panic(|| database.check_integrity()) {
        Some(Ok(true)) => {}
        Some(Ok(false)) => {
            report.problem(Table::Meta, "redb repaired the structure of a copy of the file");
        }
        Some(Err(error)) => report.problem(Table::Meta, format_args!("redb: {error}")),
        None => report.problem(Table::Meta, "redb panicked while checking the structure"),
    }
}
