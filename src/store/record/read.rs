//! Reading records.

use std::ops::ControlFlow;

use crate::base::error::{Error, Result};
use crate::store::values::key::{Key, prefix_end};
use crate::store::values::payload::{HexKey, damaged};
use crate::store::values::raw::{KeySpan, Order, Raw, Window, read_number, read_value};
use crate::store::values::schema::{Table, count_key};

use super::{Index, Indexed, Record, Row, split_entry};

/// The reads that every rule uses, from a snapshot or from a write under way.
pub trait Tx: Raw {
    /// Calls `visit` with the record under `key`, if it exists, and returns the result.
    fn view<R: Record, T>(
        &self,
        key: &R::Key,
        mut visit: impl FnMut(Row<'_, R>) -> Result<T>,
    ) -> Result<Option<T>> {
        read_value(self, R::TABLE, &key.encoded(), |payload| visit(Row::read(payload)?))
    }

    /// Returns the record under `key`, if it exists.
    fn find<R: Record>(&self, key: &R::Key) -> Result<Option<R>> {
        self.view(key, |row: Row<'_, R>| row.into_record())
    }

    /// Returns the record under `key`.
    ///
    /// # Errors
    /// 404 `Not found.` when it does not exist.
    fn get<R: Record>(&self, key: &R::Key) -> Result<R> {
        self.find(key)?.ok_or_else(Error::not_found)
    }

    /// Returns the metadata of the record under `key`, if it exists. Cheaper than reading the whole record.
    fn meta<R: Record>(&self, key: &R::Key) -> Result<Option<R::Meta>> {
        self.view::<R, _>(key, |row| Ok(row.meta))
    }

    /// Whether a record exists under `key`.
    fn exists<R: Record>(&self, key: &R::Key) -> Result<bool> {
        Ok(self.view::<R, _>(key, |_| Ok(()))?.is_some())
    }

    /// Returns the version of the record under `key`, or 0 if it does not exist. The version grows with each change of
    /// the record and of its dependents ([`WriteTx::bump_version`](crate::store::write::WriteTx::bump_version)).
    fn version<R: Record>(&self, key: &R::Key) -> Result<u64> {
        Ok(self.view::<R, _>(key, |row| Ok(row.version))?.unwrap_or(0))
    }

    /// Returns the primary key that a unique index holds under `key`.
    fn lookup<R: Record, K: Key>(&self, index: &Index<R, K>, key: &K) -> Result<Option<R::Key>> {
        read_value(self, index.table(), &key.encoded(), |entry| read_key(index, entry))
    }

    /// Walks the records whose index key begins with `prefix`, within `window`.
    fn walk<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        window: Window,
        visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        if window.limit == 0 {
            return Ok(());
        }
        let Window { offset, limit, order } = window;
        let mut visit = filter_window::<R>(Window { offset: 0, ..window }, |_| true, visit);
        self.raw_walk(index.table(), &prefix.encoded(), offset, order, &mut |key, entry| {
            self.raw_entry(index, (limit <= MAX_PAGE).then_some(key), entry, &mut visit)
        })
    }

    /// Walks the records whose index key begins with `prefix`, after the first `skip` records, until `visit` breaks.
    fn walk_until<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        skip: usize,
        order: Order,
        mut visit: impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let prefix = prefix.encoded();
        self.raw_walk(index.table(), &prefix, skip, order, &mut |_, entry| {
            self.raw_entry(index, None, entry, &mut visit)
        })
    }

    /// Walks the records from `from` up to, but not including, `until`, in descending order, until `visit` breaks. The
    /// bounds are index keys, with or without the primary key behind.
    fn walk_down<R: Record, K: Key, S: Key>(
        &self,
        index: &Index<R, K>,
        from: &S,
        until: &S,
        mut visit: impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (from, until) = (from.encoded(), until.encoded());
        let span = KeySpan { from: &from, until: Some(&until), skip: 0, order: Order::Descending };
        self.raw_between(index.table(), span, &mut |_, entry| {
            self.raw_entry(index, None, entry, &mut visit)
        })
    }

    /// Walks the records whose index key begins with `prefix`, starting at `from`, in ascending order, until `visit`
    /// breaks. `from` is an index key, with or without the primary key behind.
    fn walk_from<R: Record, K: Key, P: Key, S: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        from: &S,
        mut visit: impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (from, until) = (from.encoded(), prefix_end(&prefix.encoded()));
        let (until, order) = (until.as_deref(), Order::Ascending);
        let span = KeySpan { from: &from, until, skip: 0, order };
        self.raw_between(index.table(), span, &mut |_, entry| {
            self.raw_entry(index, None, entry, &mut visit)
        })
    }

    /// Walks the records whose primary key lies from `from` up to, but not including, `until`, until `visit` breaks.
    fn scan_between<R: Record, S: Key>(
        &self,
        from: &S,
        until: &S,
        order: Order,
        mut visit: impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (from, until) = (from.encoded(), until.encoded());
        let span = KeySpan { from: &from, until: Some(&until), skip: 0, order };
        self.raw_between(R::TABLE, span, &mut |_, payload| visit(Row::read(payload)?))
    }

    /// Calls `visit` with the record that an index entry points to or contains. If the key of the entry is given,
    /// fails unless the record belongs under that key.
    #[doc(hidden)]
    fn raw_entry<R: Record, K: Key>(
        &self,
        index: &Index<R, K>,
        key: Option<&[u8]>,
        entry: &[u8],
        visit: &mut dyn FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        match split_entry(index.form(), entry) {
            Some((_, Some(payload))) => visit(Row::read(payload)?),
            Some((primary, None)) => {
                let flow = read_value(self, R::TABLE, primary, |payload| {
                    if let Some(key) = key {
                        require_index_key(index, key, payload)?;
                    }
                    visit(Row::read(payload)?)
                })?;
                let text = format_args!("an entry points to no record under {}", HexKey(primary));
                flow.ok_or_else(|| damaged(index.table(), &text))
            }
            None => Err(damaged(index.table(), &"an entry holds no record")),
        }
    }

    /// Walks the records whose primary key begins with `prefix`, within `window`.
    fn scan<R: Record, P: Key>(
        &self,
        prefix: &P,
        window: Window,
        visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        if window.limit == 0 {
            return Ok(());
        }
        let Window { offset, order, .. } = window;
        let mut visit = filter_window::<R>(Window { offset: 0, ..window }, |_| true, visit);
        self.raw_walk(R::TABLE, &prefix.encoded(), offset, order, &mut |_, payload| {
            visit(Row::read(payload)?)
        })
    }

    /// Walks the records whose primary key begins with `prefix` and whose metadata passes `keep`. `window` counts only
    /// these.
    fn scan_where<R: Record, P: Key>(
        &self,
        prefix: &P,
        window: Window,
        keep: impl FnMut(&R::Meta) -> bool,
        visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        let mut visit = filter_window(window, keep, visit);
        self.raw_walk(R::TABLE, &prefix.encoded(), 0, window.order, &mut |_, payload| {
            visit(Row::read(payload)?)
        })
    }

    /// Walks the records whose index key begins with `prefix` and whose metadata passes `keep`. `window` counts only
    /// these.
    fn walk_where<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        window: Window,
        keep: impl FnMut(&R::Meta) -> bool,
        visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        self.walk_until(index, prefix, 0, window.order, filter_window(window, keep, visit))
    }

    /// Returns at most `limit` primary keys that an index holds under `prefix`, in ascending order.
    fn keys<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        limit: usize,
    ) -> Result<Vec<R::Key>> {
        let mut keys = Vec::new();
        if limit == 0 {
            return Ok(keys);
        }
        let prefix = prefix.encoded();
        self.raw_walk(index.table(), &prefix, 0, Order::Ascending, &mut |_, entry| {
            keys.push(read_key(index, entry)?);
            Ok(if keys.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(keys)
    }

    /// Returns how many records of type `R` a tenant has, from the maintained count.
    fn count<R: Record>(&self, tenant: &impl Key) -> Result<u64> {
        read_number(self, Table::Counts, &count_key(R::TABLE, &tenant.encoded()))
    }

    /// Returns the payload under `key` of any table, unparsed.
    fn get_raw(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        read_value(self, table, key, |payload| Ok(payload.to_vec()))
    }
}

impl<X: Raw + ?Sized> Tx for X {}

/// The largest window that is a page of a list. A page verifies each of its index entries; a larger walk does not.
const MAX_PAGE: usize = 1000;

/// Fails unless the index has this record under `key`. Covering indexes need no such check: a checksum protects the
/// record in the entry.
fn require_index_key<R: Record, K: Key>(
    index: &Index<R, K>,
    key: &[u8],
    payload: &[u8],
) -> Result<()> {
    let record = Row::<R>::parse(payload)?;
    if index.entry(&record).as_deref() == Some(key) {
        return Ok(());
    }
    let text = format_args!(
        "an entry under {} points to a record that belongs under another key",
        HexKey(key)
    );
    Err(damaged(index.table(), &text))
}

fn read_key<R: Record, K: Key>(index: &Index<R, K>, entry: &[u8]) -> Result<R::Key> {
    split_entry(index.form(), entry)
        .and_then(|(mut primary, _)| R::Key::read(&mut primary))
        .ok_or_else(|| damaged(index.table(), &"an entry holds no key"))
}

/// Shows the rows whose metadata passes `keep`. `window` counts only these; the walk breaks when it is full.
fn filter_window<R: Record>(
    window: Window,
    mut keep: impl FnMut(&R::Meta) -> bool,
    mut visit: impl FnMut(Row<'_, R>) -> Result<()>,
) -> impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>> {
    let (mut skip, mut left) = (window.offset, window.limit);
    move |row| {
        if left > 0 && keep(&row.meta) {
            if skip == 0 {
                visit(row)?;
                left -= 1;
            }
            skip = skip.saturating_sub(1);
        }
        Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
