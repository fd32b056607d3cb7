//! Reading records.

use std::ops::ControlFlow;

use crate::base::error::{Error, Result};
use crate::store::values::key::{Key, prefix_end};
use crate::store::values::payload::{HexKey, damaged, version_of};
use crate::store::values::raw::{
    KeySpan, Order, Raw, Window, continue_if, read_number, read_value,
};
use crate::store::values::schema::{Table, count_key};

use super::{Index, Indexed, Record, Row, split_entry};

/// Called with a record.
type VisitRow<'v, R> = dyn FnMut(Row<'_, R>) -> Result<()> + 'v;
/// Called with a record; decides whether the walk continues.
type WalkRow<'v, R> = dyn FnMut(Row<'_, R>) -> Result<ControlFlow<()>> + 'v;
/// Decides by its metadata whether a list includes a record.
type Keep<'k, R> = dyn FnMut(&<R as Record>::Meta) -> bool + 'k;

/// The reads that every rule uses, from a snapshot or from a write under way.
///
/// A method is compiled for each caller, so it only passes its arguments to a function that is compiled once for each type of
/// record.
pub trait Tx: Raw {
    /// Calls `visit` with the record under `key`, if it exists, and returns the result.
    fn view<R: Record, T>(
        &self,
        key: &R::Key,
        mut visit: impl FnMut(Row<'_, R>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut value = None;
        visit_record::<R>(self.as_dyn(), &key.encoded(), &mut |row| {
            value = Some(visit(row)?);
            Ok(())
        })?;
        Ok(value)
    }

    /// Returns the record under `key`, if it exists.
    fn find<R: Record>(&self, key: &R::Key) -> Result<Option<R>> {
        read_value(self.as_dyn(), R::TABLE, &key.encoded(), &Row::<R>::parse)
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
        read_value(self.as_dyn(), R::TABLE, &key.encoded(), &Row::<R>::meta_of)
    }

    /// Whether a record exists under `key`.
    fn exists<R: Record>(&self, key: &R::Key) -> Result<bool> {
        Ok(self.version::<R>(key)? > 0)
    }

    /// Returns the version of the record under `key`, or 0 if it does not exist. The version grows with each change of
    /// the record and of its dependents ([`WriteTx::bump_version`](crate::store::write::WriteTx::bump_version)).
    fn version<R: Record>(&self, key: &R::Key) -> Result<u64> {
        version_under(self.as_dyn(), R::TABLE, &key.encoded())
    }

    /// Returns the primary key that a unique index holds under `key`.
    fn lookup<R: Record, K: Key>(&self, index: &Index<R, K>, key: &K) -> Result<Option<R::Key>> {
        read_value(self.as_dyn(), index.table, &key.encoded(), &|entry| read_key(index, entry))
    }

    /// Walks the records whose index key begins with `prefix`, within `window`.
    fn walk<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        window: Window,
        mut visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        walk_window::<R>(self.as_dyn(), Some(index), &prefix.encoded(), window, None, &mut visit)
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
        walk_span::<R>(self.as_dyn(), Some(index), span, false, &mut visit)
    }

    /// Walks the records whose index key begins with `prefix`, starting at `from`, in ascending order, until `visit`
    /// breaks. `from` is the prefix, or an index key with or without the primary key behind.
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
        walk_span::<R>(self.as_dyn(), Some(index), span, false, &mut visit)
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
        walk_span::<R>(self.as_dyn(), None, span, false, &mut visit)
    }

    /// Walks the records whose primary key begins with `prefix`, within `window`.
    fn scan<R: Record, P: Key>(
        &self,
        prefix: &P,
        window: Window,
        mut visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        walk_window::<R>(self.as_dyn(), None, &prefix.encoded(), window, None, &mut visit)
    }

    /// Walks the records whose primary key begins with `prefix` and whose metadata passes `keep`. `window` counts only
    /// these.
    fn scan_where<R: Record, P: Key>(
        &self,
        prefix: &P,
        window: Window,
        mut keep: impl FnMut(&R::Meta) -> bool,
        mut visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        let (prefix, keep) = (prefix.encoded(), &mut keep);
        walk_window::<R>(self.as_dyn(), None, &prefix, window, Some(keep), &mut visit)
    }

    /// Walks the records whose index key begins with `prefix` and whose metadata passes `keep`. `window` counts only
    /// these.
    fn walk_where<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        window: Window,
        mut keep: impl FnMut(&R::Meta) -> bool,
        mut visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        let (prefix, keep) = (prefix.encoded(), &mut keep);
        walk_window::<R>(self.as_dyn(), Some(index), &prefix, window, Some(keep), &mut visit)
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
        self.raw_walk(index.table, &prefix.encoded(), 0, Order::Ascending, &mut |_, entry| {
            keys.push(read_key(index, entry)?);
            Ok(continue_if(keys.len() < limit))
        })?;
        Ok(keys)
    }

    /// Returns how many records of type `R` a tenant has, from the maintained count.
    fn count<R: Record>(&self, tenant: &impl Key) -> Result<u64> {
        read_number(self.as_dyn(), Table::Counts, &count_key(R::TABLE, &tenant.encoded()))
    }

    /// Returns the payload under `key` of any table, unparsed.
    fn get_raw(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        read_value(self.as_dyn(), table, key, &|payload| Ok(payload.to_vec()))
    }
}

impl<X: Raw + ?Sized> Tx for X {}

/// The largest window that is a page of a list. A page verifies each of its index entries; a larger walk does not.
const MAX_PAGE: usize = 1000;

/// Returns the version of the record under `key`, or 0 if it does not exist.
pub(in crate::store) fn version_under(tx: &dyn Raw, table: Table, key: &[u8]) -> Result<u64> {
    let version = read_value(tx, table, key, &|payload| version_of(table, payload))?;
    Ok(version.unwrap_or(0))
}

/// Calls `visit` with the record under `key`, if it exists.
fn visit_record<R: Record>(tx: &dyn Raw, key: &[u8], visit: &mut VisitRow<'_, R>) -> Result<()> {
    tx.raw_get(R::TABLE, key, &mut |payload| visit(Row::read(payload)?))
}

/// Walks the records whose primary key, or whose key in `index`, begins with `prefix` and whose metadata passes `keep`, within
/// `window`.
fn walk_window<R: Record>(
    tx: &dyn Raw,
    index: Option<&dyn Indexed<R>>,
    prefix: &[u8],
    Window { offset, limit, order }: Window,
    mut keep: Option<&mut Keep<'_, R>>,
    visit: &mut VisitRow<'_, R>,
) -> Result<()> {
    if limit == 0 {
        return Ok(());
    }
    let until = prefix_end(prefix);
    let mut skip = if keep.is_some() { offset } else { 0 };
    let mut left = limit;
    let span = KeySpan { from: prefix, until: until.as_deref(), skip: offset - skip, order };
    let is_page = keep.is_none() && limit <= MAX_PAGE;
    walk_span(tx, index, span, is_page, &mut |row| {
        if keep.as_mut().is_none_or(|keep| keep(&row.meta)) {
            if skip == 0 {
                visit(row)?;
                left -= 1;
            }
            skip = skip.saturating_sub(1);
        }
        Ok(continue_if(left > 0))
    })
}

/// Walks the records whose primary keys, or whose keys in `index`, lie in `span`, until `visit` breaks. A verified walk fails
/// unless the records belong under these keys of the index.
fn walk_span<R: Record>(
    tx: &dyn Raw,
    index: Option<&dyn Indexed<R>>,
    span: KeySpan<'_>,
    is_verified: bool,
    visit: &mut WalkRow<'_, R>,
) -> Result<()> {
    let Some(index) = index else {
        return tx.raw_between(R::TABLE, span, &mut |_, payload| visit(Row::read(payload)?));
    };
    tx.raw_between(index.table(), span, &mut |key, entry| {
        visit_entry(tx, index, is_verified.then_some(key), entry, visit)
    })
}

/// Calls `visit` with the record that an index entry points to or contains. If the key of the entry is given,
/// fails unless the record belongs under that key.
fn visit_entry<R: Record>(
    tx: &dyn Raw,
    index: &dyn Indexed<R>,
    key: Option<&[u8]>,
    entry: &[u8],
    visit: &mut WalkRow<'_, R>,
) -> Result<ControlFlow<()>> {
    let primary = match split_entry(index.form(), entry) {
        Some((_, Some(payload))) => return visit(Row::read(payload)?),
        Some((primary, None)) => primary,
        None => return Err(damaged(index.table(), &"an entry holds no record")),
    };
    let mut flow = None;
    tx.raw_get(R::TABLE, primary, &mut |payload| {
        if let Some(key) = key {
            require_index_key(index, key, payload)?;
        }
        flow = Some(visit(Row::read(payload)?)?);
        Ok(())
    })?;
    let text = format_args!("an entry points to no record under {}", HexKey(primary));
    flow.ok_or_else(|| damaged(index.table(), &text))
}

/// Fails unless the index has this record under `key`. Covering indexes need no such check: a checksum protects the
/// record in the entry.
fn require_index_key<R: Record>(index: &dyn Indexed<R>, key: &[u8], payload: &[u8]) -> Result<()> {
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
    split_entry(index.form, entry)
        .and_then(|(mut primary, _)| R::Key::read(&mut primary))
        .ok_or_else(|| damaged(index.table, &"an entry holds no key"))
}
