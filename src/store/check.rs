//! `check`: whether the file holds together.
//!
//! Walks one snapshot: every checksum, every index against its table, every count, every reference;
//! then lets redb check its own structure on a temporary copy of the file's bytes.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;

use redb::Database;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

use super::Store;
use super::key::Key;
use super::read::{Snapshot, Tx};
use super::record::{Record, Reference, Row, count_key, entry_payload};
use super::schema::Table;

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
}

impl Findings {
    fn problem(&mut self, table: Table, what: impl Display) {
        self.problem_count += 1;
        if self.problems.len() < TOLD {
            self.problems.push(format!("{}: {what}", table.name()));
        }
    }
}

/// A type of record, for `check` to walk.
pub trait Kind: Send + Sync {
    /// Where its records are kept.
    fn table(&self) -> Table;
    #[doc(hidden)]
    fn check(
        &self,
        tx: &Snapshot,
        excused: &dyn Fn(&Snapshot, &Reference) -> Result<bool>,
        findings: &mut Findings,
    ) -> Result<()>;
}

/// The records of type `R`, for `check` to walk.
pub fn kind<R: Record>() -> Box<dyn Kind> {
    Box::new(Of::<R>(std::marker::PhantomData))
}

struct Of<R>(std::marker::PhantomData<fn() -> R>);

/// What the records of one type add up to.
#[derive(Default)]
struct Sums {
    entries: HashMap<Table, u64>,
    counts: HashMap<Vec<u8>, u64>,
}

impl<R: Record> Kind for Of<R> {
    fn table(&self) -> Table {
        R::TABLE
    }

    fn check(
        &self,
        tx: &Snapshot,
        excused: &dyn Fn(&Snapshot, &Reference) -> Result<bool>,
        findings: &mut Findings,
    ) -> Result<()> {
        let mut sums = Sums::default();
        tx.each(R::TABLE, &mut |key, payload| {
            findings.values += 1;
            let read =
                payload.and_then(|payload| Ok((payload, Row::<R>::read(payload)?.into_record()?)));
            match read {
                Ok((payload, record)) => {
                    let found = Found { key, payload, record: &record };
                    check_record(tx, &found, excused, &mut sums, findings)?;
                }
                Err(error) => findings.problem(R::TABLE, error),
            }
            Ok(())
        })?;
        for index in R::INDEXES {
            let expected = sums.entries.get(&index.table()).copied().unwrap_or(0);
            check_entries(tx, index.table(), expected, findings)?;
        }
        check_counts::<R>(tx, sums.counts, findings)
    }
}

/// A record as it was found.
struct Found<'f, R> {
    key: &'f [u8],
    payload: &'f [u8],
    record: &'f R,
}

fn check_record<R: Record>(
    tx: &Snapshot,
    found: &Found<'_, R>,
    excused: &dyn Fn(&Snapshot, &Reference) -> Result<bool>,
    sums: &mut Sums,
    findings: &mut Findings,
) -> Result<()> {
    let Found { key, payload, record } = *found;
    if record.key().encoded() != key {
        findings.problem(R::TABLE, "a record lies under another record's key");
    }
    for index in R::INDEXES {
        let Some(entry) = index.entry(record) else { continue };
        *sums.entries.entry(index.table()).or_default() += 1;
        let expected = entry_payload(index.form(), key, payload);
        if tx.plain(index.table(), &entry).ok().flatten() != Some(expected) {
            findings.problem(
                index.table(),
                "a record is missing from the index, or stands there otherwise",
            );
        }
    }
    for count in R::COUNTS {
        if let Some(key) = count.key(record) {
            *sums.counts.entry(key).or_default() += 1;
        }
    }
    for reference in record.references() {
        let found = tx.plain(reference.table, &reference.key).is_ok_and(|found| found.is_some());
        if !found && !excused(tx, &reference)? {
            findings.problem(
                R::TABLE,
                format_args!("a record points at nothing in {}", reference.table.name()),
            );
        }
    }
    Ok(())
}

/// Every expected entry was looked up from its record, so a differing number means entries too many.
fn check_entries(
    tx: &Snapshot,
    index: Table,
    expected: u64,
    findings: &mut Findings,
) -> Result<()> {
    let mut found = 0;
    tx.each(index, &mut |_, payload| {
        found += 1;
        if let Err(error) = payload {
            findings.problem(index, error);
        }
        Ok(())
    })?;
    findings.values += found;
    if found != expected {
        findings.problem(index, format_args!("{found} entries where {expected} belong"));
    }
    Ok(())
}

fn check_counts<R: Record>(
    tx: &Snapshot,
    mut expected: HashMap<Vec<u8>, u64>,
    findings: &mut Findings,
) -> Result<()> {
    let prefix = count_key(R::TABLE, &[]);
    tx.each(Table::Counts, &mut |key, payload| {
        if !key.starts_with(&prefix) {
            return Ok(());
        }
        findings.values += 1;
        let stored = payload.ok().and_then(|mut payload| u64::read(&mut payload));
        let counted = expected.remove(key);
        if stored != counted {
            findings.problem(
                Table::Counts,
                format_args!(
                    "{} of {} stored where there are {}",
                    stored.unwrap_or(0),
                    R::TABLE.name(),
                    counted.unwrap_or(0)
                ),
            );
        }
        Ok(())
    })?;
    if !expected.is_empty() {
        findings.problem(
            Table::Counts,
            format_args!("{} counts of {} are missing", expected.len(), R::TABLE.name()),
        );
    }
    Ok(())
}

impl Store {
    /// Checks the whole file: the records of all `kinds`, then every other table's checksums, then
    /// redb's own structure. `excused` says of a reference that leads nowhere whether that is in order.
    ///
    /// Writes wait while the file's bytes are copied; everything else runs beside them.
    ///
    /// # Errors
    /// When the file cannot be read at all, or its folder has no room for the copy.
    pub async fn check(
        &self,
        kinds: Vec<Box<dyn Kind>>,
        excused: fn(&Snapshot, &Reference) -> Result<bool>,
    ) -> Result<Findings> {
        let snapshot = self.snapshot()?;
        let walk = move || check_snapshot(&snapshot, &kinds, excused);
        let mut findings = tokio::task::spawn_blocking(walk).await.map_err(Error::internal)??;
        let path = self.path().to_owned();
        let copy = self.between_writes(move || copy_of(&path)).await?.map_err(Error::internal)?;
        let sound = tokio::task::spawn_blocking(move || structure_is_sound(&copy))
            .await
            .map_err(Error::internal)?;
        match sound {
            Ok(true) => {}
            Ok(false) => {
                findings.problem(Table::Meta, "redb repaired the structure of a copy of the file");
            }
            Err(error) => findings.problem(Table::Meta, format_args!("redb: {error}")),
        }
        Ok(findings)
    }
}

fn check_snapshot(
    tx: &Snapshot,
    kinds: &[Box<dyn Kind>],
    excused: fn(&Snapshot, &Reference) -> Result<bool>,
) -> Result<Findings> {
    let mut findings = Findings::default();
    for kind in kinds {
        kind.check(tx, &excused, &mut findings)?;
    }
    for table in [Table::Meta, Table::Sequences] {
        tx.each(table, &mut |_, payload| {
            findings.values += 1;
            if let Err(error) = payload {
                findings.problem(table, error);
            }
            Ok(())
        })?;
    }
    Ok(findings)
}

fn copy_of(path: &Path) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut copy = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    std::io::copy(&mut std::fs::File::open(path)?, &mut copy)?;
    Ok(copy)
}

fn structure_is_sound(copy: &NamedTempFile) -> Result<bool, redb::DatabaseError> {
    Database::builder().open(copy.path())?.check_integrity()
}
