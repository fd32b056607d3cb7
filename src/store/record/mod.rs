//! Types of records. A record is stored as small typed metadata and the fields as the JSON that responses show
//! ([`payload`](crate::store::values::payload)).
//!
//! Rules and lists read only the metadata. Responses copy the JSON unparsed, which makes lists fast.

pub(super) mod byte_usage;
pub(super) mod erased;
mod impl_record;
mod read;

pub(crate) use impl_record::impl_record;
pub use read::Tx;
pub(super) use read::version_under;

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::error::{Error, Result};
use crate::base::json::JsonText;
use crate::store::values::key::Key;
use crate::store::values::payload::{Payload, begin_payload, damaged, meta_bytes};
use crate::store::values::raw::{Raw, read_number};
use crate::store::values::schema::Table;

use byte_usage::Owner;

/// A resource as the store keeps it.
pub trait Record: Sized + 'static {
    /// The table of the records.
    const TABLE: Table;
    /// The secondary indexes, which the store keeps up to date.
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[];
    /// The counts that include these records, which the store keeps up to date.
    const COUNTS: &'static [Count<Self>] = &[];
    /// The sums that include these records, which the store keeps up to date.
    const SUMS: &'static [&'static dyn Summed] = &[];
    /// Whether a new record may get the key of a deleted one. The versions of such records come from a
    /// sequence of their table, so that no version is used twice.
    const REUSES_KEYS: bool = false;
    /// The type of the primary key.
    type Key: Key;
    /// The part that rules and lists read.
    type Meta: Serialize + DeserializeOwned;
    /// The part that responses show; `()` if they show nothing of the record.
    type Fields: Serialize + DeserializeOwned;

    /// Returns the primary key of this record.
    fn key(&self) -> Self::Key;
    /// Returns the two parts of this record.
    fn parts(&self) -> (&Self::Meta, &Self::Fields);
    /// Creates a record from its two parts.
    fn from_parts(meta: Self::Meta, fields: Self::Fields) -> Self;
    /// Returns this record with the metadata that follows from its fields, or `None` if it has that metadata.
    /// Every write stores the projected record, so rules assign only the fields.
    fn projected(&self) -> Option<Self> {
        None
    }
    /// Returns the tenant that the record's bytes count towards. Returns `None` for records without a tenant:
    /// users and their keys, the pace of mails, and what the operator changes outside organizations.
    ///
    /// The owner must not change while the record exists. `tx` must contain the records that this record
    /// refers to.
    fn owner(&self, tx: &dyn Raw) -> Result<Option<Owner>>;
    /// Returns the records that must exist for this record to be valid. `check` verifies them.
    fn references(&self) -> Vec<Reference> {
        Vec::new()
    }
}

/// A record that consists of metadata, which rules and lists read, and of fields, which responses show.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordOf<M, F> {
    /// The part that rules and lists read.
    pub meta: M,
    /// The part that responses show.
    pub fields: F,
}

/// A reference from one record to another.
pub struct Reference {
    /// The table of the referenced record.
    pub table: Table,
    /// The key of the referenced record.
    pub key: Vec<u8>,
}

impl Reference {
    /// Creates a reference to the record of type `R` under `key`.
    pub fn to<R: Record>(key: &R::Key) -> Self {
        Self { table: R::TABLE, key: key.encoded() }
    }
}

/// A secondary index with keys of type `K` over the records of type `R`.
pub struct Index<R, K> {
    table: Table,
    form: IndexForm,
    of: fn(&R) -> Option<K>,
    types: PhantomData<fn() -> (R, K)>,
}

/// What an index stores under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexForm {
    /// The primary key of the only record.
    Unique,
    /// The primary key of each of several records.
    Many,
    /// Each of several records completely, after its primary key. A list then reads one range, but each
    /// record is written twice.
    Covering,
}

impl<R: Record, K: Key> Index<R, K> {
    /// Creates an index in which each key has at most one record. It omits records for which `of` returns
    /// `None`.
    pub const fn unique(table: Table, of: fn(&R) -> Option<K>) -> Self {
        Self { table, form: IndexForm::Unique, of, types: PhantomData }
    }

    /// Creates an index in which a key may have several records, sorted by key and then by primary key.
    pub const fn many(table: Table, of: fn(&R) -> Option<K>) -> Self {
        Self { table, form: IndexForm::Many, of, types: PhantomData }
    }

    /// Creates an index like [`many`](Self::many) that contains the records themselves.
    pub const fn covering(table: Table, of: fn(&R) -> Option<K>) -> Self {
        Self { table, form: IndexForm::Covering, of, types: PhantomData }
    }
}

/// An [`Index`] without its key type.
pub trait Indexed<R>: Sync {
    /// The table of the index.
    fn table(&self) -> Table;
    /// What the index stores under a key.
    fn form(&self) -> IndexForm;
    /// Returns the key of `record` in the index, or `None` if the index omits it.
    fn entry(&self, record: &R) -> Option<Vec<u8>>;
}

impl<R: Record, K: Key> Indexed<R> for Index<R, K> {
    fn table(&self) -> Table {
        self.table
    }

    fn form(&self) -> IndexForm {
        self.form
    }

    fn entry(&self, record: &R) -> Option<Vec<u8>> {
        let mut key = (self.of)(record)?.encoded();
        if self.form != IndexForm::Unique {
            record.key().write(&mut key);
        }
        Some(key)
    }
}

/// A maintained count of the records of type `R` of each tenant: returns the tenant of a record, or `None` if the count omits it.
pub type Count<R> = fn(&R) -> Option<Vec<u8>>;

/// A stored record whose JSON is not parsed yet.
pub struct Row<'a, R: Record> {
    /// Increases with each change of the record; at least 1.
    pub version: u64,
    /// The part that rules and lists read.
    pub meta: R::Meta,
    /// The JSON that responses show.
    pub fields: &'a [u8],
}

impl<'a, R: Record> Row<'a, R> {
    /// Parses the payload of a record, except for the JSON.
    ///
    /// # Errors
    /// 500 when the bytes are not such a record.
    pub fn read(payload: &'a [u8]) -> Result<Self> {
        let Payload { version, meta, fields } = Payload::read(R::TABLE, payload)?;
        match postcard::take_from_bytes(meta) {
            Ok((meta, [])) => Ok(Self { version, meta, fields }),
            Ok(_) => Err(damaged(R::TABLE, &"the metadata has extra bytes")),
            Err(error) => Err(damaged(R::TABLE, &error)),
        }
    }

    /// Returns the metadata in the payload of a record.
    fn meta_of(payload: &[u8]) -> Result<R::Meta> {
        Ok(Row::<R>::read(payload)?.meta)
    }

    /// Parses the payload of a record into the record.
    ///
    /// # Errors
    /// 500 when the bytes are not such a record.
    pub(super) fn parse(payload: &[u8]) -> Result<R> {
        Row::<R>::read(payload)?.into_record()
    }

    /// Returns the JSON that responses show.
    pub fn json(&self) -> JsonText<'a, R::Fields> {
        JsonText::new(self.fields)
    }

    /// Parses the JSON and returns the whole record.
    ///
    /// # Errors
    /// 500 when the JSON does not fit the type.
    pub fn into_record(self) -> Result<R> {
        match serde_json::from_slice(self.fields) {
            Ok(fields) => Ok(R::from_parts(self.meta, fields)),
            Err(error) => Err(damaged(R::TABLE, &error)),
        }
    }
}

/// Returns the stored form of a record at a version.
///
/// # Errors
/// 500 when the record cannot be serialized.
pub fn payload_of<R: Record>(version: u64, record: &R) -> Result<Vec<u8>> {
    let (meta, fields) = record.parts();
    let mut out = begin_payload(version, &meta_bytes(meta)?)?;
    serde_json::to_writer(&mut out, fields).map_err(Error::internal)?;
    Ok(out)
}

/// Returns what an index of this form stores for a record with this primary key and payload.
pub(super) fn entry_payload(form: IndexForm, primary: &[u8], payload: &[u8]) -> Vec<u8> {
    match form {
        IndexForm::Unique | IndexForm::Many => primary.to_vec(),
        IndexForm::Covering => {
            let mut entry = u64::try_from(primary.len()).unwrap_or(u64::MAX).encoded();
            entry.extend_from_slice(primary);
            entry.extend_from_slice(payload);
            entry
        }
    }
}

/// Returns the primary key in an index entry, and the record's payload if the entry contains it.
fn split_entry(form: IndexForm, entry: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    match form {
        IndexForm::Unique | IndexForm::Many => Some((entry, None)),
        IndexForm::Covering => {
            let mut rest = entry;
            let length = usize::try_from(u64::read(&mut rest)?).ok()?;
            let (primary, payload) = rest.split_at_checked(length)?;
            Some((primary, Some(payload)))
        }
    }
}

/// The encoded tenant whose sum a record adds to, and the amount.
pub type Summand = (Vec<u8>, u64);

/// A maintained sum over the records of type `R`, one for each tenant, stored beside the counts.
///
/// The amount of a record may depend on other records that it refers to. The store updates the sum when the record itself is
/// written or deleted. Code that changes a record it refers to must call
/// [`WriteTx::adjust`](crate::store::write::WriteTx::adjust).
pub struct Sum<R: Record> {
    name: &'static str,
    of: fn(&dyn Raw, &Row<'_, R>) -> Result<Summand>,
}

impl<R: Record> Sum<R> {
    /// Creates the sum of the amounts that `of` returns. `name` must differ from the name of every other sum
    /// and every table, because counts use the names of their tables.
    pub const fn per(name: &'static str, of: fn(&dyn Raw, &Row<'_, R>) -> Result<Summand>) -> Self {
        Self { name, of }
    }

    /// Returns the sum of a tenant.
    pub fn read(&self, tx: &dyn Raw, tenant: &impl Key) -> Result<u64> {
        read_number(tx, Table::Counts, &self.key(&tenant.encoded()))
    }

    /// Returns the key of a tenant's sum in [`Table::Counts`].
    pub(in crate::store) fn key(&self, tenant: &[u8]) -> Vec<u8> {
        let mut key = self.name.to_owned().encoded();
        key.extend_from_slice(tenant);
        key
    }
}

/// A [`Sum`] without its type of record.
pub trait Summed: Sync {
    /// Returns the key of the sum that the record with this payload adds to, and the amount.
    fn summand(&self, tx: &dyn Raw, payload: &[u8]) -> Result<Summand>;
}

impl<R: Record> Summed for Sum<R> {
    fn summand(&self, tx: &dyn Raw, payload: &[u8]) -> Result<Summand> {
        let (tenant, amount) = (self.of)(tx, &Row::read(payload)?)?;
        Ok((self.key(&tenant), amount))
    }
}
