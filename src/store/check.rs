//! `check`: whether the file holds together.
//!
//! Walks one snapshot: every checksum, every index against its table, every count, every reference;
//! then lets redb check its own structure on a temporary copy of the file's bytes.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use redb::Database;
use serde::Serialize;

use crate::error::{Error, Result};

use super::disk::{Drive, Reading};
use super::engine::RETRY_AFTER;
use super::file::{builder, folder_of};
use super::import::Filling;
use super::key::Key;
use super::lines::{self, Line, Secrecy};
use super::panics::caught;
use super::progress::{Progress, Steps};
use super::read::Tx;
use super::record::{Named, Record, Reference, Row, entry_payload};
use super::schema::Table;
use super::snapshot::Snapshot;
use super::sums::Counts;
use super::{DEFAULT_CACHE, Store};
use crate::background::{Priority, in_background};

/// How many problems are told; the rest are only counted.
const TOLD: usize = 100;

/// What `check` found.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    /// How many values were read.
    pub values: u64,
    /// How many problems there are in all.
    pub problem_count: u64,
    /// The first of them, each in one line.
    pub problems: Vec<String>,
    /// Whether the file could not be read to its end.
    #[serde(skip)]
    pub(super) interrupted: bool,
    #[serde(skip)]
    steps: Steps,
}

impl Findings {
    /// Counts a value that was read.
    fn read(&mut self) {
        self.values += 1;
        self.steps.done();
    }

    /// The same, where all of the file was read: what could not be read is no damage.
    ///
    /// # Errors
    /// 503 where it was not.
    pub(super) fn whole(self) -> Result<Self> {
        if !self.interrupted {
            return Ok(self);
        }
        let why = self.problems.last().map_or("", String::as_str);
        let text = format!("the file could not be read to its end: {why}");
        Err(Error::unavailable(RETRY_AFTER, text))
    }

    fn problem(&mut self, table: Table, what: impl Display) {
        self.problem_count += 1;
        if self.problems.len() < TOLD {
            self.problems.push(format!("{}: {what}", table.name()));
        }
    }
}

/// Whether a reference that leads nowhere is in order.
pub type Excused = fn(&Snapshot, &Reference) -> Result<bool>;

/// What a file is checked by, written out by, and read in by.
pub struct Checks {
    /// Every type of record, and what of it is secret.
    pub kinds: Vec<Box<dyn Kind>>,
    /// Whether a reference that leads nowhere is in order.
    pub excused: Excused,
}

/// A type of record, for `check`, `export` and `import` to walk.
pub trait Kind: Send + Sync {
    /// Where its records and their index entries are kept.
    fn tables(&self) -> Vec<Table>;
    #[doc(hidden)]
    fn check(
        &self,
        tx: &Snapshot,
        excused: Excused,
        counts: &mut Counts,
        findings: &mut Findings,
    ) -> Result<()>;
    /// Appends the line that an export has for a record; answers whether it has one.
    #[doc(hidden)]
    fn write_line(&self, with_secrets: bool, payload: &[u8], out: &mut Vec<u8>) -> Result<bool>;
    /// Adds the record of a line of an export to a new file.
    #[doc(hidden)]
    fn read_line(&self, line: &Line<'_>, filling: &mut Filling<'_, '_>) -> Result<()>;
}

/// The records of type `R`, none of which holds a secret.
pub fn kind<R: Record>() -> Box<dyn Kind> {
    secret_kind::<R>(Secrecy::Open)
}

/// The records of type `R`, of which this is secret.
pub fn secret_kind<R: Record>(secrecy: Secrecy<R>) -> Box<dyn Kind> {
    Box::new(Of(secrecy))
}

struct Of<R: Record>(Secrecy<R>);

/// How many entries each index has to have by the records.
type Entries = HashMap<Table, u64>;

impl<R: Record> Kind for Of<R> {
    fn tables(&self) -> Vec<Table> {
        let indexes = R::INDEXES.iter().map(|index| index.table());
        std::iter::once(R::TABLE).chain(indexes).collect()
    }

    fn check(
        &self,
        tx: &Snapshot,
        excused: Excused,
        counts: &mut Counts,
        findings: &mut Findings,
    ) -> Result<()> {
        let mut entries = Entries::new();
        tx.each(R::TABLE, &mut |key, payload| {
            findings.read();
            let read =
                payload.and_then(|payload| Ok((payload, Row::<R>::read(payload)?.into_record()?)));
            match read {
                Ok((payload, record)) => {
                    if record.key().encoded() != key {
                        let what = "a record lies under another record's key";
                        findings.problem(R::TABLE, format_args!("{what}, {}", Named(key)));
                    }
                    let found = Found { key, payload, record: &record };
                    check_entries_of(tx, &found, &mut entries, findings);
                    check_references(tx, &record, excused, findings)?;
                    counts.add(tx, key, payload, &record);
                }
                Err(error) => findings.problem(R::TABLE, error),
            }
            Ok(())
        })?;
        // Two indexes may share a table.
        let indexes: BTreeSet<_> = R::INDEXES.iter().map(|index| index.table()).collect();
        for index in indexes {
            let expected = entries.get(&index).copied().unwrap_or(0);
            check_number(tx, index, expected, findings)?;
        }
        Ok(())
    }

    fn write_line(&self, with_secrets: bool, payload: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        lines::write(&self.0, with_secrets, payload, out)
    }

    fn read_line(&self, line: &Line<'_>, filling: &mut Filling<'_, '_>) -> Result<()> {
        filling.record(&self.0, line)
    }
}

/// A record as it was found.
struct Found<'f, R> {
    key: &'f [u8],
    payload: &'f [u8],
    record: &'f R,
}

/// Whether every index has its entry for a record, as it should stand there.
fn check_entries_of<R: Record>(
    tx: &Snapshot,
    found: &Found<'_, R>,
    entries: &mut Entries,
    findings: &mut Findings,
) {
    for index in R::INDEXES {
        let Some(entry) = index.entry(found.record) else { continue };
        *entries.entry(index.table()).or_default() += 1;
        let expected = entry_payload(index.form(), found.key, found.payload);
        let wrong = match tx.plain(index.table(), &entry).ok().flatten() {
            Some(stands) if stands == expected => continue,
            Some(_) => "an entry differs from its record",
            None => "a record is missing from the index",
        };
        findings.problem(index.table(), format_args!("{wrong}, {}", Named(found.key)));
    }
}

fn check_references<R: Record>(
    tx: &Snapshot,
    record: &R,
    excused: Excused,
    findings: &mut Findings,
) -> Result<()> {
    for reference in record.references() {
        let found = tx.plain(reference.table, &reference.key).is_ok_and(|found| found.is_some());
        if !found && !excused(tx, &reference)? {
            let target = reference.table.name();
            let key = Named(&record.key().encoded()).to_string();
            let what = format_args!("the record {key} points at nothing in {target}");
            findings.problem(R::TABLE, what);
        }
    }
    Ok(())
}

/// Every expected entry was looked up from its record, so a differing number means entries too many.
fn check_number(tx: &Snapshot, index: Table, expected: u64, findings: &mut Findings) -> Result<()> {
    let found = check_sums(tx, index, findings)?;
    if found != expected {
        findings.problem(index, format_args!("{found} entries where {expected} belong"));
    }
    Ok(())
}

/// Verifies the checksum of every value of `table`; answers how many there are.
fn check_sums(tx: &Snapshot, table: Table, findings: &mut Findings) -> Result<u64> {
    let mut found = 0;
    tx.each(table, &mut |_, payload| {
        found += 1;
        findings.read();
        if let Err(error) = payload {
            findings.problem(table, error);
        }
        Ok(())
    })?;
    Ok(found)
}

fn check_counts(tx: &Snapshot, mut expected: Counts, findings: &mut Findings) -> Result<()> {
    check_sums(tx, Table::Counts, findings)?;
    tx.each(Table::Counts, &mut |key, payload| {
        let Some(stored) = payload.ok().map(|mut payload| u64::read(&mut payload)) else {
            expected.0.remove(key);
            return Ok(());
        };
        let counted = expected.0.remove(key);
        if stored.is_none() || stored != counted {
            let (what, stored, counted) =
                (counted_by(key), stored.unwrap_or(0), counted.unwrap_or(0));
            let text = format_args!("{stored} of {what} stored where there are {counted}");
            findings.problem(Table::Counts, text);
        }
        Ok(())
    })?;
    for (key, counted) in expected.0 {
        let text = format!("no count of {} where there are {counted}", counted_by(&key));
        findings.problem(Table::Counts, text);
    }
    Ok(())
}

/// What a count is of: the name of a table, or bytes.
fn counted_by(key: &[u8]) -> String {
    String::read(&mut &*key).unwrap_or_default()
}

impl Store {
    /// Checks the whole file: the records of all kinds, then every other table's checksums, then redb's own
    /// structure.
    ///
    /// Writes wait while the file's bytes are copied; everything else runs beside them.
    ///
    /// # Errors
    /// When the file is closed or is closed meanwhile, cannot be read, or its folder has no room for the copy.
    pub async fn check(&self, checks: Checks, progress: Progress) -> Result<Findings> {
        let (walk_begun, snapshot) = self.begin_walk().await?;
        let told = progress.clone();
        let walk = move || {
            let _under_way = walk_begun;
            check_snapshot(&snapshot, &checks, &told)
        };
        let mut findings = in_background(Priority::Upkeep, walk).await?.whole()?;
        let (drive, path) = (self.drive.clone(), self.path().to_owned());
        let copy =
            self.between_writes(move || copy_of(&drive, &path)).await?.map_err(Error::internal)?;
        let walk = move || {
            match caught(|| builder(DEFAULT_CACHE).create_file(copy)) {
                Some(Ok(mut database)) => check_structure(&mut database, &progress, &mut findings),
                Some(Err(error)) => findings.problem(Table::Meta, format_args!("redb: {error}")),
                None => findings.problem(Table::Meta, "redb panicked over the structure"),
            }
            findings
        };
        in_background(Priority::Upkeep, walk).await
    }
}

/// Walks every table: the records of all kinds, then the others' checksums.
pub(super) fn check_snapshot(tx: &Snapshot, checks: &Checks, progress: &Progress) -> Findings {
    let of = tx.values().unwrap_or(0);
    let steps = progress.begin("checking", of);
    let mut findings = Findings { steps, ..Findings::default() };
    let mut counts = Counts::default();
    let mut others = Table::ALL.to_vec();
    others.retain(|table| *table != Table::Counts);
    for kind in &checks.kinds {
        let tables = kind.tables();
        others.retain(|table| !tables.contains(table));
        let table = tables.first().copied().unwrap_or(Table::Meta);
        reported(table, &mut findings, |found| kind.check(tx, checks.excused, &mut counts, found));
    }
    reported(Table::Counts, &mut findings, |found| check_counts(tx, counts, found));
    for table in others {
        reported(table, &mut findings, |found| check_sums(tx, table, found).map(drop));
    }
    findings.steps = progress.begin("finding each key", of);
    for table in Table::ALL {
        reported(*table, &mut findings, |found| check_ways(tx, *table, found));
    }
    findings
}

/// Whether every key is found from the root, in its order, and there are as many as the table says: where the way to
/// some is lost, they are absent for every read.
fn check_ways(tx: &Snapshot, table: Table, findings: &mut Findings) -> Result<()> {
    let (mut walked, mut last) = (0, None::<Vec<u8>>);
    let mut astray = Vec::new();
    tx.each_sealed(table, &mut |key, _| {
        walked += 1;
        findings.steps.done();
        let follows = last.as_deref().is_none_or(|last| last < key);
        if astray.len() < TOLD && (!follows || !tx.has(table, key)?) {
            astray.push(Named(key).to_string());
        }
        last = Some(key.to_vec());
        Ok(())
    })?;
    for key in astray {
        findings.problem(table, format_args!("the key {key} is not found where it belongs"));
    }
    let told = tx.len(table)?;
    if told != walked {
        findings.problem(table, format_args!("{walked} keys where the table says {told}"));
    }
    Ok(())
}

/// Walks on where a table cannot be walked to its end. redb panics over some of what it does not expect.
fn reported(table: Table, findings: &mut Findings, walk: impl FnOnce(&mut Findings) -> Result<()>) {
    match caught(|| walk(findings)) {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            findings.interrupted |= error.status() == 503;
            findings.problem(table, error);
        }
        None => findings.problem(table, "redb panicked over the table"),
    }
}

/// How many bytes are copied at a time.
const COPIED: usize = 1024 * 1024;

/// A copy without a name, so that nothing of it is left behind however this ends.
fn copy_of(drive: &Drive, path: &Path) -> std::io::Result<File> {
    let mut copy = tempfile::tempfile_in(folder_of(path))?;
    std::io::copy(&mut BufReader::with_capacity(COPIED, Reading::of(drive, path)?), &mut copy)?;
    Ok(copy)
}

/// Lets redb check the structure of a file that nobody else has open.
pub(super) fn check_structure(
    database: &mut Database,
    progress: &Progress,
    findings: &mut Findings,
) {
    progress.begin("checking the structure", 0);
    match caught(|| database.check_integrity()) {
        Some(Ok(true)) => {}
        Some(Ok(false)) => {
            findings.problem(Table::Meta, "redb repaired the structure of a copy of the file");
        }
        Some(Err(error)) => findings.problem(Table::Meta, format_args!("redb: {error}")),
        None => findings.problem(Table::Meta, "redb panicked over the structure"),
    }
}
