//! Records without their types. What the store does alike with all records takes these, so that it is compiled once and not for
//! each type of record.

use crate::base::error::Result;
use crate::store::values::key::Key;
use crate::store::values::raw::Raw;
use crate::store::values::schema::{Table, count_key};

use super::byte_usage::Owner;
use super::{IndexForm, Record, Reference, Row, Summand, Summed, payload_of};

/// A type of records.
#[derive(Clone, Copy)]
pub struct ErasedType {
    /// [`Record::TABLE`].
    pub table: Table,
    /// [`Record::REUSES_KEYS`].
    pub reuses_keys: bool,
    /// Parses the payload of a record.
    pub parse: fn(&[u8]) -> Result<Box<dyn ErasedRecord>>,
}

impl ErasedType {
    /// Returns the type `R`.
    pub fn of<R: Record>() -> Self {
        let parse = |payload: &[u8]| -> Result<Box<dyn ErasedRecord>> {
            Ok(Box::new(Row::<R>::parse(payload)?))
        };
        Self { table: R::TABLE, reuses_keys: R::REUSES_KEYS, parse }
    }
}

/// The place of a record in an index.
pub struct IndexEntry {
    pub table: Table,
    pub form: IndexForm,
    /// `None` if the index omits the record.
    pub key: Option<Vec<u8>>,
}

/// The tenant whose count includes a record; `None` if the count omits the record.
type CountedTenant = Option<Vec<u8>>;

/// A [`Record`] of any type.
pub trait ErasedRecord {
    /// Returns the encoded primary key.
    fn encoded_key(&self) -> Vec<u8>;
    /// Returns the stored form of the record at a version.
    fn payload(&self, version: u64) -> Result<Vec<u8>>;
    /// See [`Record::owner`].
    fn owner_in(&self, tx: &dyn Raw) -> Result<Option<Owner>>;
    /// See [`Record::references`].
    fn all_references(&self) -> Vec<Reference>;
    /// Whether the metadata follows from the fields, if it has to.
    fn is_projected(&self) -> bool;
    /// Returns the entry in one of the indexes; `None` behind the last index.
    fn entry(&self, at: usize) -> Option<IndexEntry>;
    /// Returns the tenant in one of the counts; `None` behind the last count.
    fn counted_tenant(&self, at: usize) -> Option<CountedTenant>;
    /// See [`Record::SUMS`].
    fn sums(&self) -> &'static [&'static dyn Summed];
}

impl<R: Record> ErasedRecord for R {
    fn encoded_key(&self) -> Vec<u8> {
        self.key().encoded()
    }

    fn payload(&self, version: u64) -> Result<Vec<u8>> {
        payload_of(version, self)
    }

    fn owner_in(&self, tx: &dyn Raw) -> Result<Option<Owner>> {
        self.owner(tx)
    }

    fn all_references(&self) -> Vec<Reference> {
        self.references()
    }

    fn is_projected(&self) -> bool {
        self.projected().is_none()
    }

    fn entry(&self, at: usize) -> Option<IndexEntry> {
        let index = R::INDEXES.get(at)?;
        Some(IndexEntry { table: index.table(), form: index.form(), key: index.entry(self) })
    }

    fn counted_tenant(&self, at: usize) -> Option<CountedTenant> {
        R::COUNTS.get(at).map(|tenant_of| tenant_of(self))
    }

    fn sums(&self) -> &'static [&'static dyn Summed] {
        R::SUMS
    }
}

impl dyn ErasedRecord + '_ {
    /// Returns the entries in all indexes.
    pub fn entries(&self) -> Vec<IndexEntry> {
        (0..).map_while(|at| self.entry(at)).collect()
    }

    /// Returns what the record of `table` with this payload adds to each count, and then to each sum; `None` for a count that
    /// omits it. A count is the sum of 1 for each record.
    pub fn summands(
        &self,
        tx: &dyn Raw,
        table: Table,
        payload: &[u8],
    ) -> Vec<Result<Option<Summand>>> {
        let tenants = (0..).map_while(|at| self.counted_tenant(at));
        let counted = tenants.map(|tenant| Ok(tenant.map(|of| (count_key(table, &of), 1))));
        let summed = self.sums().iter().map(|sum| sum.summand(tx, payload).map(Some));
        counted.chain(summed).collect()
    }
}
