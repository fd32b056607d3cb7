//! Stored values that writes read again and again, such as the caller's key, user and organization.
//!
//! The writer keeps them across batches. Only the writer changes values, and it changes them here too, so an entry always
//! equals the value in the file.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quick_cache::unsync::Cache;
use quick_cache::{Equivalent, Weighter};

use crate::store::values::schema::Table;

/// The maximum total length of the kept keys and values: 2 MiB.
const MAX_BYTES: u64 = 2 * 1024 * 1024;
/// The number of entries for which the cache is laid out.
const EXPECTED_ENTRIES: usize = 4096;
/// The maximum length of a kept value.
const MAX_VALUE: usize = 4096;

/// A verified payload, or `None` if the file has no value under the key.
pub type HotValue = Option<Arc<[u8]>>;

/// The values that writes read lately.
pub struct HotValues(RefCell<Cache<HotKey, HotValue, Bytes>>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct HotKey {
    table: Table,
    key: Box<[u8]>,
}

/// A [`HotKey`] for a look-up.
struct HotKeyRef<'k> {
    table: Table,
    key: &'k [u8],
}

impl Hash for HotKeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.table.hash(state);
        self.key.hash(state);
    }
}

impl Equivalent<HotKey> for HotKeyRef<'_> {
    fn equivalent(&self, key: &HotKey) -> bool {
        self.table == key.table && *self.key == *key.key
    }
}

/// Weighs an entry by the bytes of its key and its value.
#[derive(Clone)]
struct Bytes;

impl Weighter<HotKey, HotValue> for Bytes {
    fn weight(&self, key: &HotKey, value: &HotValue) -> u64 {
        (key.key.len() + value.as_ref().map_or(0, |value| value.len())) as u64 + 1
    }
}

impl Default for HotValues {
    fn default() -> Self {
        Self(RefCell::new(Cache::with_weighter(EXPECTED_ENTRIES, MAX_BYTES, Bytes)))
    }
}

impl HotValues {
    /// Returns the value under `key`; `None` if it is not known.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<HotValue> {
        self.0.borrow().get(&HotKeyRef { table, key }).cloned()
    }

    /// Keeps the value that the file has under `key`, if it is small.
    pub fn keep(&self, table: Table, key: &[u8], payload: Option<&[u8]>) {
        if payload.is_none_or(|payload| payload.len() <= MAX_VALUE) {
            let key = HotKey { table, key: key.into() };
            self.0.borrow_mut().insert(key, payload.map(Arc::from));
        }
    }

    /// Replaces the value under `key`, if it is kept.
    pub fn change(&mut self, table: Table, key: &[u8], payload: Option<&[u8]>) {
        let known = HotKeyRef { table, key };
        let cache = self.0.get_mut();
        if cache.peek(&known).is_none() {
            return;
        }
        cache.remove(&known);
        self.keep(table, key, payload);
    }
}
