//! How a record lies in its table: sealed, led by a small typed head, followed by the JSON that
//! shows it.
//!
//! ```text
//! checksum (8) | version, head (postcard) | shown (JSON)
//! ```
//!
//! Rules and lists decide by the head alone; the JSON goes into answers as it stands, which is what
//! makes a list fast.

use std::fmt::{self, Display};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::error::{Error, Result};

use super::bytes::Owner;
use super::key::Key;
use super::read::Tx;
use super::schema::Table;
use super::sums::Sum;

/// A resource as the store keeps it.
pub trait Record: Sized + 'static {
    /// Where it is kept.
    const TABLE: Table;
    /// Its secondary indexes, which the store keeps in step.
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[];
    /// The counts it takes part in, which the store keeps in step.
    const COUNTS: &'static [Count<Self>] = &[];
    /// The sums it takes part in, which the store keeps in step.
    const SUMS: &'static [&'static Sum<Self>] = &[];
    /// Whether another record may come under the key of one that was removed. The versions of such records come
    /// from one sequence of their table, so that no version is met again.
    const KEYS_COME_BACK: bool = false;
    /// Its primary key.
    type Key: Key;
    /// What rules and lists decide by.
    type Head: Serialize + DeserializeOwned;
    /// What answers show of it; `()` where it is never shown.
    type Shown: Serialize + DeserializeOwned;

    /// The primary key of this record.
    fn key(&self) -> Self::Key;
    /// Its two parts.
    fn parts(&self) -> (&Self::Head, &Self::Shown);
    /// The record of two parts.
    fn join(head: Self::Head, shown: Self::Shown) -> Self;
    /// The tenant that its bytes count to. None for records that belong to no tenant: users and their keys, sent mails,
    /// and what the operator changes outside organizations.
    /// It stays the same for as long as the record is there, and `tx` holds what the record points at.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>>;
    /// What must exist for this record to make sense, for `check`.
    fn references(&self) -> Vec<Reference> {
        Vec::new()
    }
}

/// Something a record points at.
pub struct Reference {
    /// The table of what is pointed at.
    pub table: Table,
    /// Its key there.
    pub key: Vec<u8>,
}

impl Reference {
    /// A reference to the record of type `R` under `key`.
    pub fn to<R: Record>(key: &R::Key) -> Self {
        Self { table: R::TABLE, key: key.encoded() }
    }
}

/// A secondary index over the records of type `R`, reached by keys of type `K`.
pub struct Index<R, K> {
    table: Table,
    form: Form,
    of: fn(&R) -> Option<K>,
    types: PhantomData<fn() -> (R, K)>,
}

/// What an index holds under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The primary key of the one record.
    Unique,
    /// The primary key of each of many records.
    Many,
    /// Each of many records whole, behind its primary key: a list is one range, at the price of writing
    /// the record twice.
    Covering,
}

impl<R: Record, K: Key> Index<R, K> {
    /// An index in which each key leads to at most one record. Records for which `of` gives none are
    /// not in it.
    pub const fn unique(table: Table, of: fn(&R) -> Option<K>) -> Self {
        Self { table, form: Form::Unique, of, types: PhantomData }
    }

    /// An index in which a key may lead to many records, sorted by key and then by primary key.
    pub const fn many(table: Table, of: fn(&R) -> Option<K>) -> Self {
        Self { table, form: Form::Many, of, types: PhantomData }
    }

    /// An index as [`many`](Self::many) makes it, which holds the records themselves.
    pub const fn covering(table: Table, of: fn(&R) -> Option<K>) -> Self {
        Self { table, form: Form::Covering, of, types: PhantomData }
    }

    /// Where the index is kept.
    pub const fn table(&self) -> Table {
        self.table
    }

    /// What it holds under a key.
    pub const fn form(&self) -> Form {
        self.form
    }
}

/// An [`Index`] whose key type does not matter.
pub trait Indexed<R>: Sync {
    /// Where the index is kept.
    fn table(&self) -> Table;
    /// What the index holds under a key.
    fn form(&self) -> Form;
    /// The key under which `record` stands, if it is in the index.
    fn entry(&self, record: &R) -> Option<Vec<u8>>;
}

impl<R: Record, K: Key> Indexed<R> for Index<R, K> {
    fn table(&self) -> Table {
        self.table
    }

    fn form(&self) -> Form {
        self.form
    }

    fn entry(&self, record: &R) -> Option<Vec<u8>> {
        let mut key = (self.of)(record)?.encoded();
        if self.form != Form::Unique {
            record.key().write(&mut key);
        }
        Some(key)
    }
}

/// A maintained count: how many records of type `R` a tenant has.
pub struct Count<R> {
    of: fn(&R) -> Option<Vec<u8>>,
}

impl<R: Record> Count<R> {
    /// Counts each record under the tenant that `of` gives, and not at all where it gives none.
    pub const fn per(of: fn(&R) -> Option<Vec<u8>>) -> Self {
        Self { of }
    }

    /// The key of the count that `record` adds to.
    pub(super) fn key(&self, record: &R) -> Option<Vec<u8>> {
        (self.of)(record).map(|tenant| count_key(R::TABLE, &tenant))
    }
}

/// Where the count of `table`'s records of a tenant is kept.
pub(super) fn count_key(table: Table, tenant: &[u8]) -> Vec<u8> {
    let mut key = table.name().to_owned().encoded();
    key.extend_from_slice(tenant);
    key
}

/// A record as it lies in its table, read without touching the JSON.
pub struct Row<'a, R: Record> {
    /// Counts the record's changes, from 1.
    pub version: u64,
    /// What rules and lists decide by.
    pub head: R::Head,
    /// The JSON that shows it.
    pub shown: &'a [u8],
}

impl<'a, R: Record> Row<'a, R> {
    /// Reads a record's payload.
    ///
    /// # Errors
    /// 500 when the bytes are no such record.
    pub fn read(payload: &'a [u8]) -> Result<Self> {
        let (version, rest) =
            postcard::take_from_bytes(payload).map_err(|error| damaged(R::TABLE, &error))?;
        let (head, shown) =
            postcard::take_from_bytes(rest).map_err(|error| damaged(R::TABLE, &error))?;
        Ok(Self { version, head, shown })
    }

    /// The whole record.
    ///
    /// # Errors
    /// 500 when the JSON is not what the record shows.
    pub fn into_record(self) -> Result<R> {
        let shown =
            serde_json::from_slice(self.shown).map_err(|error| damaged(R::TABLE, &error))?;
        Ok(R::join(self.head, shown))
    }
}

/// The payload of `record` at `version`.
///
/// # Errors
/// 500 when a part cannot be serialized, which no record of this crate does.
pub(super) fn payload<R: Record>(version: u64, record: &R) -> Result<Vec<u8>> {
    let (head, shown) = record.parts();
    let mut out = postcard::to_stdvec(&(version, head)).map_err(Error::internal)?;
    serde_json::to_writer(&mut out, shown).map_err(Error::internal)?;
    Ok(out)
}

/// What an index of this form holds for the record with this primary key and payload.
pub(super) fn entry_payload(form: Form, primary: &[u8], payload: &[u8]) -> Vec<u8> {
    match form {
        Form::Unique | Form::Many => primary.to_vec(),
        Form::Covering => {
            let mut entry = u64::try_from(primary.len()).unwrap_or(u64::MAX).encoded();
            entry.extend_from_slice(primary);
            entry.extend_from_slice(payload);
            entry
        }
    }
}

/// The primary key that an index entry holds, and the record's payload where it holds that too.
pub(super) fn split_entry(form: Form, entry: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    match form {
        Form::Unique | Form::Many => Some((entry, None)),
        Form::Covering => {
            let mut rest = entry;
            let length = usize::try_from(u64::read(&mut rest)?).ok()?;
            let (primary, payload) = rest.split_at_checked(length)?;
            Some((primary, Some(payload)))
        }
    }
}

/// Whether two payloads of one type of record say the same of it.
pub(super) fn differ_in_version_only(a: &[u8], b: &[u8]) -> bool {
    let unversioned = |payload| postcard::take_from_bytes::<u64>(payload).map(|(_, rest)| rest);
    matches!((unversioned(a), unversioned(b)), (Ok(a), Ok(b)) if a == b)
}

/// How many bytes of a sealed value are its checksum.
pub(super) const CHECKSUM: usize = 8;

/// `payload` led by the checksum of its place and it.
pub(super) fn seal(table: Table, key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(CHECKSUM + payload.len());
    out.extend_from_slice(&checksum(table, key, payload));
    out.extend_from_slice(payload);
    out
}

/// The payload of a sealed value, once its checksum holds.
pub(super) fn open<'a>(table: Table, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8]> {
    match sealed.split_first_chunk::<CHECKSUM>() {
        Some((sum, payload)) if *sum == checksum(table, key, payload) => Ok(payload),
        _ => Err(damaged(table, &format_args!("checksum mismatch under the key {}", Named(key)))),
    }
}

/// Bound to table and key, so that a value found in another place is refused too.
fn checksum(table: Table, key: &[u8], payload: &[u8]) -> [u8; CHECKSUM] {
    let place = xxh3_64_with_seed(key, xxh3_64(table.name().as_bytes()));
    xxh3_64_with_seed(payload, place).to_le_bytes()
}

/// A key in a message to the operator: its bytes, each as two hexadecimal digits.
pub(super) struct Named<'k>(pub(super) &'k [u8]);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 64;
        self.0.iter().take(SHOWN).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if self.0.len() > SHOWN { f.write_str("...") } else { Ok(()) }
    }
}

/// What a read answers when the file does not hold what it should.
pub(super) fn damaged(table: Table, what: &dyn Display) -> Error {
    Error::internal(format_args!("the data file is damaged: {}: {what}", table.name()))
}
