//! The types of records, for everything that processes all tables alike: `check`, `export` and `import`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::base::secret::SigningSecret;
use crate::store::reads::report::{CheckReport, check_sums};
use crate::store::reads::snapshot::Snapshot;
use crate::store::record::byte_usage::{self, Owner};
use crate::store::record::erased::{ErasedRecord, ErasedType, IndexEntry};
use crate::store::record::{Record, Reference, Row, Tx, entry_payload};
use crate::store::values::payload::{HexKey, Payload};
use crate::store::values::schema::{PerTable, Table};

use super::json_lines::{
    ErasedRedaction, ExportLine, ImportWriter, IncludedSecrets, Redaction, Regenerator, begin,
    end_with_fields, write_meta_json,
};
use super::json_parts::{invalid_field, read_part};

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
    fn erased(&self) -> ErasedType;
    /// Returns what an export without secrets omits.
    #[doc(hidden)]
    fn redaction(&self) -> ErasedRedaction;
    /// Appends the metadata of a record to its line.
    #[doc(hidden)]
    fn write_meta(&self, payload: &[u8], is_hidden: bool, out: &mut Vec<u8>) -> Result<()>;
    /// Parses the parts of a line. Derives what an export without secrets omits from the metadata if the secret is given.
    #[doc(hidden)]
    fn read_parts(
        &self,
        meta: &Value,
        fields: &Value,
        secret: Option<&SigningSecret>,
    ) -> Result<Box<dyn ErasedRecord>>;
}

impl dyn RecordType + '_ {
    /// Returns the owner of the record with this payload. `tx` must contain the records that it refers to.
    pub fn owner(&self, tx: &Snapshot, payload: &[u8]) -> Result<Option<Owner>> {
        (self.erased().parse)(payload)?.owner_in(tx)
    }

    /// Returns the fields that responses show of the record with this payload.
    pub fn fields(&self, payload: &[u8]) -> Result<Value> {
        let fields = Payload::read(self.table(), payload)?.fields;
        serde_json::from_slice(fields).map_err(Error::internal)
    }

    /// Appends the line of a record to an export. Returns false if the record has no line.
    pub(in crate::store) fn write_line(
        &self,
        secrets: IncludedSecrets,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let Payload { version, fields, .. } = Payload::read(self.table(), payload)?;
        let redaction = self.redaction();
        let is_hidden = secrets.hide(redaction);
        let hidden = match redaction {
            ErasedRedaction::Whole if is_hidden => return Ok(false),
            ErasedRedaction::Member { name, .. } if is_hidden => Some(name),
            _ => None,
        };
        begin(self.table(), Some(version), out);
        self.write_meta(payload, is_hidden, out)?;
        end_with_fields(self.table(), fields, hidden, out)?;
        Ok(true)
    }

    /// Adds the record in a line of an export to a new file.
    pub(in crate::store) fn read_line(
        &self,
        line: &ExportLine,
        writer: &mut ImportWriter<'_>,
    ) -> Result<()> {
        let is_hidden = writer.secrets.hide(self.redaction());
        let regenerator = writer.regenerator.as_mut().filter(|_| is_hidden);
        let (record, payload) = self.parse_line(line, regenerator)?;
        self.write_line(writer.secrets, &payload, &mut writer.rendered)?;
        writer.add(self.table(), &*record, payload)
    }

    /// Parses the record in a line, and returns it with its payload. `regenerator` has the secrets that the export hides; it is
    /// `None` if the export contains them.
    pub(in crate::store) fn parse_line(
        &self,
        line: &ExportLine,
        regenerator: Option<&mut Regenerator>,
    ) -> Result<(Box<dyn ErasedRecord>, Vec<u8>)> {
        let version = line.checked_version()?;
        let (mut new, mut secret) = (None, None);
        match (self.redaction(), regenerator) {
            (ErasedRedaction::Whole, Some(_)) => {
                return Err(invalid_field("table", "is secret, but the export has no secrets"));
            }
            (ErasedRedaction::Member { name, regenerate }, Some(source)) => {
                new = regenerate(&mut source.draw).map(|value| (name, value));
            }
            (ErasedRedaction::Meta, Some(source)) => secret = Some(&source.secret),
            _ => {}
        }
        let record = self.read_parts(&line.meta, &line.fields_with(new), secret)?;
        let payload = record.payload(version)?;
        Ok((record, payload))
    }
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

    fn erased(&self) -> ErasedType {
        ErasedType::of::<R>()
    }

    fn redaction(&self) -> ErasedRedaction {
        match self.0 {
            Redaction::Open => ErasedRedaction::Open,
            Redaction::Whole => ErasedRedaction::Whole,
            Redaction::Member { name, regenerate } => ErasedRedaction::Member { name, regenerate },
            Redaction::Meta { .. } => ErasedRedaction::Meta,
        }
    }

    fn write_meta(&self, payload: &[u8], is_hidden: bool, out: &mut Vec<u8>) -> Result<()> {
        let mut meta = Row::<R>::read(payload)?.meta;
        if let Redaction::Meta { hide, .. } = &self.0
            && is_hidden
        {
            hide(&mut meta);
        }
        write_meta_json(&meta, out)
    }

    fn read_parts(
        &self,
        meta: &Value,
        fields: &Value,
        secret: Option<&SigningSecret>,
    ) -> Result<Box<dyn ErasedRecord>> {
        let mut record = R::from_parts(read_part(meta, "meta")?, read_part(fields, "fields")?);
        if let (Redaction::Meta { regenerate, .. }, Some(secret)) = (&self.0, secret) {
            regenerate(&mut record, secret)?;
        }
        Ok(Box::new(record))
    }
}

/// Checks all records of a type with their indexes, and adds what they contribute to `expected`.
pub fn check_records(
    record_type: &dyn RecordType,
    tx: &Snapshot,
    is_pending: IsPendingDeletion,
    expected: &mut ExpectedCounts,
    report: &mut CheckReport,
) -> Result<()> {
    let of = record_type.erased();
    let mut entry_counts = PerTable::new(|| 0);
    tx.each(of.table, &mut |key, payload| {
        report.count_value();
        let read = payload.and_then(|payload| Ok((payload, (of.parse)(payload)?)));
        let (payload, record) = match read {
            Ok(read) => read,
            Err(error) => {
                report.problem(of.table, error);
                return Ok(());
            }
        };
        check_record(of.table, key, &*record, report);
        for IndexEntry { table, form, key: entry } in record.entries() {
            if let Some(entry) = entry {
                *entry_counts.slot_mut(table) += 1;
                let right = entry_payload(form, key, payload);
                check_entry(tx, (table, entry.as_slice()), &right, key, report);
            }
        }
        check_references(tx, of.table, &*record, is_pending, report)?;
        expected.add(tx, of.table, (key, payload), &*record);
        Ok(())
    })?;
    let tables = record_type.tables();
    // Two indexes may share a table.
    for index in Table::ALL.iter().filter(|table| **table != of.table && tables.contains(table)) {
        // Each expected entry was looked up, so a higher number means entries without a record.
        let (found, expected) = (check_sums(tx, *index, report)?, *entry_counts.slot(*index));
        if found != expected {
            report.problem(*index, format_args!("{found} entries, expected {expected}"));
        }
    }
    Ok(())
}

fn check_record(table: Table, key: &[u8], record: &dyn ErasedRecord, report: &mut CheckReport) {
    if record.encoded_key() != key {
        let what = "a record is stored under another record's key";
        report.problem(table, format_args!("{what}, {}", HexKey(key)));
    }
    if !record.is_projected() {
        let what = "the metadata of a record differs from its fields";
        report.problem(table, format_args!("{what}, {}", HexKey(key)));
    }
}

/// Checks that an index has the right entry for the record under `key`.
fn check_entry(
    tx: &Snapshot,
    (index, entry): (Table, &[u8]),
    right: &[u8],
    key: &[u8],
    report: &mut CheckReport,
) {
    let wrong = match tx.get_raw(index, entry).ok().flatten() {
        Some(stored) if stored == right => return,
        Some(_) => "an entry differs from its record",
        None => "a record is missing from the index",
    };
    report.problem(index, format_args!("{wrong}, {}", HexKey(key)));
}

fn check_references(
    tx: &Snapshot,
    table: Table,
    record: &dyn ErasedRecord,
    is_pending: IsPendingDeletion,
    report: &mut CheckReport,
) -> Result<()> {
    for reference in record.all_references() {
        let found = tx.get_raw(reference.table, &reference.key).is_ok_and(|found| found.is_some());
        if !found && !is_pending(tx, &reference)? {
            let target = reference.table.name();
            let key = HexKey(&record.encoded_key()).to_string();
            let what = format_args!("the record {key} refers to a missing record in {target}");
            report.problem(table, what);
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
    fn add(
        &mut self,
        tx: &Snapshot,
        table: Table,
        (key, payload): (&[u8], &[u8]),
        record: &dyn ErasedRecord,
    ) {
        let summed = record.summands(tx, table, payload).into_iter().flatten().flatten();
        let owner = record.owner_in(tx).ok().flatten();
        let stored = owner.map(|owner| (owner.key(), byte_usage::size(key, payload)));
        for (key, adds) in summed.chain(stored) {
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
