//! The types of records, for everything that processes all tables alike: `check`, `export` and `import`.

use std::collections::BTreeMap;

use crate::base::error::Result;
use crate::store::reads::report::{CheckReport, check_sums};
use crate::store::reads::snapshot::Snapshot;
use crate::store::record::{Record, Reference, Row, Tx, byte_usage, entry_payload};
use crate::store::values::key::Key;
use crate::store::values::payload::HexKey;
use crate::store::values::schema::{Table, count_key};

use super::json_lines::{self, ExportLine, ImportWriter, IncludedSecrets, Redaction};

/// Whether a reference to a missing record is allowed.
pub type IsPendingDeletion = fn(&Snapshot, &Reference) -> Result<bool>;

/// The types of records, for `check`, `export` and `import`.
pub struct RecordRegistry {
    /// Every type of record, and what is secret in it.
    pub record_types: Vec<&'static dyn RecordType>,
    /// Whether a reference to a missing record is allowed.
    pub is_pending: IsPendingDeletion,
}

impl RecordRegistry {
    /// Returns the type of record whose table this is; `None` for indexes.
    pub(in crate::store) fn find(&self, table: Table) -> Option<&'static dyn RecordType> {
        self.record_types.iter().rfind(|record_type| record_type.table() == table).copied()
    }
}

/// A type of record that `check`, `export` and `import` can process.
pub trait RecordType: Send + Sync {
    /// Returns the table of the records.
    fn table(&self) -> Table;
    /// Returns the table of the records, followed by the tables of their indexes.
    fn tables(&self) -> Vec<Table>;
    #[doc(hidden)]
    fn check(
        &self,
        tx: &Snapshot,
        is_pending: IsPendingDeletion,
        expected: &mut ExpectedCounts,
        report: &mut CheckReport,
    ) -> Result<()>;
    /// Appends the line of a record to an export. Returns false if the record has no line.
    #[doc(hidden)]
    fn write_line(
        &self,
        secrets: IncludedSecrets,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool>;
    /// Adds the record in a line of an export to a new file.
    #[doc(hidden)]
    fn read_line(&self, line: &ExportLine, writer: &mut ImportWriter<'_>) -> Result<()>;
}

/// The record type of `R`, with what is secret in its records.
pub struct RecordTypeOf<R: Record>(pub Redaction<R>);

impl<R: Record> RecordType for RecordTypeOf<R> {
    fn table(&self) -> Table {
        R::TABLE
    }

    fn tables(&self) -> Vec<Table> {
        let indexes = R::INDEXES.iter().map(|index| index.table());
        std::iter::once(R::TABLE).chain(indexes).collect()
    }

    fn check(
        &self,
        tx: &Snapshot,
        is_pending: IsPendingDeletion,
        expected: &mut ExpectedCounts,
        report: &mut CheckReport,
    ) -> Result<()> {
        let mut entries = BTreeMap::<Table, u64>::new();
        // Two indexes may share a table.
        entries.extend(R::INDEXES.iter().map(|index| (index.table(), 0)));
        tx.each(R::TABLE, &mut |key, payload| {
            report.count_value();
            let Some(record) = check_record::<R>(tx, is_pending, (key, payload), expected, report)?
            else {
                return Ok(());
            };
            for index in R::INDEXES.iter().filter(|index| index.entry(&record).is_some()) {
                *entries.entry(index.table()).or_default() += 1;
            }
            Ok(())
        })?;
        for (index, expected) in entries {
            // Each expected entry was looked up, so a higher number means entries without a record.
            let found = check_sums(tx, index, report)?;
            if found != expected {
                report.problem(index, format_args!("{found} entries, expected {expected}"));
            }
        }
        Ok(())
    }

    fn write_line(
        &self,
        secrets: IncludedSecrets,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        json_lines::write_record(&self.0, secrets, payload, out)
    }

    fn read_line(&self, line: &ExportLine, writer: &mut ImportWriter<'_>) -> Result<()> {
        writer.record(&self.0, line)
    }
}

/// Checks a record, and adds what it contributes to `expected`. Returns the record if it can be read.
fn check_record<R: Record>(
    tx: &Snapshot,
    is_pending: IsPendingDeletion,
    (key, payload): (&[u8], Result<&[u8]>),
    expected: &mut ExpectedCounts,
    report: &mut CheckReport,
) -> Result<Option<R>> {
    let read = payload.and_then(|payload| Ok((payload, Row::<R>::parse(payload)?)));
    let (payload, record) = match read {
        Ok(read) => read,
        Err(error) => {
            report.problem(R::TABLE, error);
            return Ok(None);
        }
    };
    if record.key().encoded() != key {
        let what = "a record is stored under another record's key";
        report.problem(R::TABLE, format_args!("{what}, {}", HexKey(key)));
    }
    if record.projected().is_some() {
        let what = "the metadata of a record differs from its fields";
        report.problem(R::TABLE, format_args!("{what}, {}", HexKey(key)));
    }
    check_entries_of(tx, key, payload, &record, report);
    check_references(tx, &record, is_pending, report)?;
    expected.add(tx, key, payload, &record);
    Ok(Some(record))
}

/// Checks that every index has the right entry for a record.
fn check_entries_of<R: Record>(
    tx: &Snapshot,
    key: &[u8],
    payload: &[u8],
    record: &R,
    report: &mut CheckReport,
) {
    for index in R::INDEXES {
        let Some(entry) = index.entry(record) else { continue };
        let expected = entry_payload(index.form(), key, payload);
        let wrong = match tx.get_raw(index.table(), &entry).ok().flatten() {
            Some(stored) if stored == expected => continue,
            Some(_) => "an entry differs from its record",
            None => "a record is missing from the index",
        };
        report.problem(index.table(), format_args!("{wrong}, {}", HexKey(key)));
    }
}

fn check_references<R: Record>(
    tx: &Snapshot,
    record: &R,
    is_pending: IsPendingDeletion,
    report: &mut CheckReport,
) -> Result<()> {
    for reference in record.references() {
        let found = tx.get_raw(reference.table, &reference.key).is_ok_and(|found| found.is_some());
        if !found && !is_pending(tx, &reference)? {
            let target = reference.table.name();
            let key = HexKey(&record.key().encoded()).to_string();
            let what = format_args!("the record {key} refers to a missing record in {target}");
            report.problem(R::TABLE, what);
        }
    }
    Ok(())
}

/// The counts and sums that follow from the records, by their keys.
#[derive(Default)]
pub struct ExpectedCounts(BTreeMap<Vec<u8>, u64>);

impl ExpectedCounts {
    /// Adds the contribution of one record. A record that it refers to and that cannot be read adds nothing:
    /// `check` reports that record's damage separately.
    pub(in crate::store) fn add<R: Record>(
        &mut self,
        tx: &Snapshot,
        key: &[u8],
        payload: &[u8],
        record: &R,
    ) {
        let tenants = R::COUNTS.iter().filter_map(|count| count(record));
        let counted = tenants.map(|tenant| (count_key(R::TABLE, &tenant), 1));
        let summed = R::SUMS.iter().filter_map(|sum| sum.summand(tx, payload).ok());
        let owner = record.owner(tx).ok().flatten();
        let stored = owner.map(|owner| (owner.key(), byte_usage::size(key, payload)));
        for (key, adds) in counted.chain(summed).chain(stored) {
            *self.0.entry(key).or_default() += adds;
        }
    }

    /// Removes and returns the count under `key`. A count of 0 is as good as absent: the file has no such value.
    pub(in crate::store) fn take(&mut self, key: &[u8]) -> Option<u64> {
        self.0.remove(key).filter(|count| *count > 0)
    }

    /// Returns the counts that were not taken.
    pub(in crate::store) fn into_rest(self) -> impl Iterator<Item = (Vec<u8>, u64)> {
        self.0.into_iter().filter(|(_, count)| *count > 0)
    }
}
