//! The records of an import in bounded batches, in an order in which each follows those that it refers to.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::base::error::Result;
use crate::base::time::Timestamp;
use crate::ids::UserId;
use crate::resources::organizations::Organization;
use crate::resources::shared::import_mark::{Attempt, ImportMark};
use crate::resources::shared::registration::RegisteredRecord;
use crate::resources::{record_in, records};
use crate::store::{Key, KeySpan, Order, Raw, Snapshot, Table, Tx, WriteTx};

use super::{KEY_TABLES, Plan, conflict};

/// The maximum number of records that one transaction adds.
const RECORDS_PER_BATCH: usize = 500;
/// The number of bytes after which a transaction adds no further record.
const BYTES_PER_BATCH: usize = 1024 * 1024;

/// A record of an export.
struct ArrivingRecord {
    table: Table,
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// Records that one transaction adds.
pub struct Batch {
    plan: Arc<Plan>,
    records: Vec<ArrivingRecord>,
}

impl Batch {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds the records as a part of the import.
    ///
    /// # Errors
    /// 400 if the import counts as abandoned, or if a key has been taken meanwhile.
    pub fn add(&self, tx: &mut WriteTx<'_>, attempt: Attempt, now: Timestamp) -> Result<()> {
        attempt.renew(tx, now)?;
        self.records.iter().try_for_each(|record| self.adopt(tx, record))
    }

    /// Adds the record of the organization, which makes the import visible. Returns the slug that the organization has
    /// here.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn complete(&self, tx: &mut WriteTx<'_>, attempt: Attempt) -> Result<String> {
        attempt.complete(tx)?;
        self.records.iter().try_for_each(|record| self.adopt(tx, record))?;
        Ok(tx.get::<Organization>(&attempt.organization)?.fields.slug)
    }

    fn adopt(&self, tx: &mut WriteTx<'_>, arriving: &ArrivingRecord) -> Result<()> {
        let ArrivingRecord { table, key, payload } = arriving;
        let Some(record) = record_in(*table) else { return Ok(()) };
        if let Some(taken) = record.adopt(tx, payload, &self.plan.users)? {
            return Err(conflict(taken, *table, payload));
        }
        match UserId::read(&mut key.as_slice()).filter(|_| *table == Table::Users) {
            Some(user) => {
                tx.put(&ImportMark::Account { organization: self.plan.organization, user })
            }
            None => Ok(()),
        }
    }
}

/// The batches of an import. The last one has the record of the organization.
pub struct Batches {
    plan: Arc<Plan>,
    export: Arc<Snapshot>,
    /// The tables that are not read to their end, the next one last.
    tables: Vec<Table>,
    /// The last key that was read of the next table.
    after: Option<Vec<u8>>,
}

impl Batches {
    /// Begins to read an export.
    pub fn new(plan: Arc<Plan>, export: Arc<Snapshot>) -> Self {
        // Settings follow their projects one by one: a deleted project takes its settings along.
        let is_first = |table: &Table| {
            let is_later = KEY_TABLES.contains(table)
                || [Table::Organizations, Table::ProjectSettings].contains(table);
            !is_later && !table.is_transient()
        };
        let mut tables: Vec<_> = records().map(RegisteredRecord::table).filter(is_first).collect();
        tables.sort_unstable();
        tables.extend(KEY_TABLES);
        tables.reverse();
        Self { plan, export, tables, after: None }
    }

    /// Returns the next batch, or `None` if only the record of the organization is left.
    pub fn read_next(&mut self) -> Result<Option<Batch>> {
        let mut batch = Batch { plan: Arc::clone(&self.plan), records: Vec::new() };
        let mut bytes = 0;
        while let Some(table) = self.tables.last().copied() {
            if self.read(table, &mut batch.records, &mut bytes)? {
                return Ok(Some(batch));
            }
            self.tables.pop();
            self.after = None;
        }
        Ok((!batch.is_empty()).then_some(batch))
    }

    /// Returns the batch with the record of the organization.
    pub fn last(&self) -> Result<Batch> {
        let (table, key) = (Table::Organizations, self.plan.organization.encoded());
        let payload = self.export.get_raw(table, &key)?;
        let records =
            payload.into_iter().map(|payload| ArrivingRecord { table, key: key.clone(), payload });
        Ok(Batch { plan: Arc::clone(&self.plan), records: records.collect() })
    }

    /// Reads records of a table. Returns whether the batch is full.
    fn read(
        &mut self,
        table: Table,
        records: &mut Vec<ArrivingRecord>,
        bytes: &mut usize,
    ) -> Result<bool> {
        // The smallest key after a key has a zero byte more.
        let from = self.after.take().map_or_else(Vec::new, |mut after| {
            after.push(0);
            after
        });
        let (mut last, mut is_full) = (None, false);
        let span = KeySpan { from: &from, until: None, skip: 0, order: Order::Ascending };
        self.export.raw_between(table, span, &mut |key, payload| {
            if is_full || records.len() >= RECORDS_PER_BATCH || *bytes >= BYTES_PER_BATCH {
                is_full = true;
                return Ok(ControlFlow::Break(()));
            }
            last = Some(key.to_vec());
            if !self.plan.has(table, key) {
                return Ok(ControlFlow::Continue(()));
            }
            *bytes += payload.len();
            records.push(ArrivingRecord { table, key: key.to_vec(), payload: payload.to_vec() });
            if table == Table::Projects {
                let table = Table::ProjectSettings;
                if let Some(payload) = self.export.get_raw(table, key)? {
                    *bytes += payload.len();
                    records.push(ArrivingRecord { table, key: key.to_vec(), payload });
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.after = last.or(Some(from).filter(|from| !from.is_empty()));
        Ok(is_full)
    }
}
