//! Reading records: what a snapshot and a write under way have in common, and the snapshot.

use std::ops::{Bound, ControlFlow};

use redb::ReadableTable;

use crate::error::{Error, Result};

use super::engine::{Bytes, storage_error};
use super::key::{Key, after};
use super::record::{self, Index, Record, Row, damaged, open, split_entry};
use super::schema::Table;
use super::window::{Order, Window};

/// What a walk does with one key and its opened payload.
pub(super) type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>> + 'v;

/// Raw access, which both kinds of transaction offer.
pub trait Raw {
    /// Hands the opened payload under `key` to `visit`.
    #[doc(hidden)]
    fn raw_get(
        &self,
        table: Table,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()>;

    /// Hands each key that begins with `prefix` to `visit`, past the first `skip` ones, until it breaks.
    #[doc(hidden)]
    fn raw_walk(
        &self,
        table: Table,
        prefix: &[u8],
        skip: usize,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()>;
}

/// What every rule can read through: a snapshot, or a write under way.
pub trait Tx: Raw {
    /// Shows the record under `key`, if there is one, to `visit`.
    ///
    /// # Errors
    /// What `visit` answers; 500 or 503 when the file cannot be read.
    fn view<R: Record, T>(
        &self,
        key: &R::Key,
        mut visit: impl FnMut(Row<'_, R>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut seen = None;
        self.raw_get(R::TABLE, &key.encoded(), &mut |payload| {
            seen = Some(visit(Row::read(payload)?)?);
            Ok(())
        })?;
        Ok(seen)
    }

    /// The record under `key`, if there is one.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    fn find<R: Record>(&self, key: &R::Key) -> Result<Option<R>> {
        self.view(key, |row: Row<'_, R>| row.into_record())
    }

    /// The record under `key`.
    ///
    /// # Errors
    /// 404 `Not found.` when there is none.
    fn get<R: Record>(&self, key: &R::Key) -> Result<R> {
        self.find(key)?.ok_or_else(Error::not_found)
    }

    /// The head of the record under `key`, if there is one: cheaper than the whole.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    fn head<R: Record>(&self, key: &R::Key) -> Result<Option<R::Head>> {
        self.view::<R, _>(key, |row| Ok(row.head))
    }

    /// Whether there is a record under `key`.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    fn exists<R: Record>(&self, key: &R::Key) -> Result<bool> {
        Ok(self.view::<R, _>(key, |_| Ok(()))?.is_some())
    }

    /// The version of the record under `key`: how often it was changed, and what hangs on it. 0 where there is
    /// none.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    fn version<R: Record>(&self, key: &R::Key) -> Result<u64> {
        Ok(self.view::<R, _>(key, |row| Ok(row.version))?.unwrap_or(0))
    }

    /// The primary key of the record that a unique index holds under `key`.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    fn lookup<R: Record, K: Key>(&self, index: &Index<R, K>, key: &K) -> Result<Option<R::Key>> {
        let mut found = None;
        self.raw_get(index.table(), &key.encoded(), &mut |entry| {
            found = Some(read_key(index, entry)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Walks the records whose index key begins with `prefix`, within `window`.
    ///
    /// # Errors
    /// What `visit` answers; 500 when an index entry leads nowhere.
    fn walk<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        window: Window,
        mut visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        let mut left = window.limit;
        if left == 0 {
            return Ok(());
        }
        self.walk_until(index, prefix, window.offset, window.order, |row| {
            visit(row)?;
            left -= 1;
            Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }

    /// Walks the records whose index key begins with `prefix`, past the first `skip` ones, until `visit`
    /// breaks.
    ///
    /// # Errors
    /// What `visit` answers; 500 when an index entry leads nowhere.
    fn walk_until<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        skip: usize,
        order: Order,
        mut visit: impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let prefix = prefix.encoded();
        self.raw_walk(index.table(), &prefix, skip, order, &mut |_, entry| match split_entry(
            index.form(),
            entry,
        ) {
            Some((_, Some(payload))) => visit(Row::read(payload)?),
            Some((primary, None)) => {
                let mut flow = None;
                self.raw_get(R::TABLE, primary, &mut |payload| {
                    flow = Some(visit(Row::read(payload)?)?);
                    Ok(())
                })?;
                flow.ok_or_else(|| damaged(index.table(), &"an entry leads to no record"))
            }
            None => Err(damaged(index.table(), &"an entry holds no record")),
        })
    }

    /// Walks the records whose primary key begins with `prefix`, within `window`.
    ///
    /// # Errors
    /// What `visit` answers; 500 or 503 when the file cannot be read.
    fn scan<R: Record, P: Key>(
        &self,
        prefix: &P,
        window: Window,
        mut visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        let mut left = window.limit;
        if left == 0 {
            return Ok(());
        }
        self.raw_walk(
            R::TABLE,
            &prefix.encoded(),
            window.offset,
            window.order,
            &mut |_, payload| {
                visit(Row::read(payload)?)?;
                left -= 1;
                Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        )
    }

    /// Walks the records whose primary key begins with `prefix` and whose head `keep` lets through, within
    /// `window` of those.
    ///
    /// # Errors
    /// What `visit` answers; 500 or 503 when the file cannot be read.
    fn scan_kept<R: Record, P: Key>(
        &self,
        prefix: &P,
        window: Window,
        keep: impl FnMut(&R::Head) -> bool,
        visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        let mut visit = kept(window, keep, visit);
        self.raw_walk(R::TABLE, &prefix.encoded(), 0, window.order, &mut |_, payload| {
            visit(Row::read(payload)?)
        })
    }

    /// Walks the records whose index key begins with `prefix` and whose head `keep` lets through, within
    /// `window` of those.
    ///
    /// # Errors
    /// What `visit` answers; 500 when an index entry leads nowhere.
    fn walk_kept<R: Record, K: Key, P: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        window: Window,
        keep: impl FnMut(&R::Head) -> bool,
        visit: impl FnMut(Row<'_, R>) -> Result<()>,
    ) -> Result<()> {
        self.walk_until(index, prefix, 0, window.order, kept(window, keep, visit))
    }

    /// The primary keys an index holds under `prefix`, at most `limit`, in ascending order.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
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

    /// How many records of type `R` the tenant has, by the maintained count.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    fn count<R: Record>(&self, tenant: &impl Key) -> Result<u64> {
        read_number(self, Table::Counts, &record::count_key(R::TABLE, &tenant.encoded()))
    }

    /// The payload under `key`, whatever it is of.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    fn plain(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        self.raw_get(table, key, &mut |payload| {
            found = Some(payload.to_vec());
            Ok(())
        })?;
        Ok(found)
    }
}

impl<X: Raw + ?Sized> Tx for X {}

/// Shows the rows that `keep` lets through, within `window` of those; breaks when that is full.
fn kept<R: Record>(
    window: Window,
    mut keep: impl FnMut(&R::Head) -> bool,
    mut visit: impl FnMut(Row<'_, R>) -> Result<()>,
) -> impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>> {
    let (mut skip, mut left) = (window.offset, window.limit);
    move |row| {
        if left > 0 && keep(&row.head) {
            if skip == 0 {
                visit(row)?;
                left -= 1;
            }
            skip = skip.saturating_sub(1);
        }
        Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

fn read_key<R: Record, K: Key>(index: &Index<R, K>, entry: &[u8]) -> Result<R::Key> {
    split_entry(index.form(), entry)
        .and_then(|(mut primary, _)| R::Key::read(&mut primary))
        .ok_or_else(|| damaged(index.table(), &"an entry holds no key"))
}

pub(super) fn read_number<X: Raw + ?Sized>(tx: &X, table: Table, key: &[u8]) -> Result<u64> {
    let mut number = 0;
    tx.raw_get(table, key, &mut |payload| {
        number = u64::read(&mut &*payload).ok_or_else(|| damaged(table, &"no number"))?;
        Ok(())
    })?;
    Ok(number)
}

pub(super) fn get_from(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    key: &[u8],
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    match source.get(key).map_err(storage_error)? {
        Some(sealed) => visit(open(table, key, sealed.value())?),
        None => Ok(()),
    }
}

pub(super) fn walk_from(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    prefix: &[u8],
    skip: usize,
    order: Order,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let end = after(prefix);
    let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let range = source.range::<&[u8]>((Bound::Included(prefix), upper)).map_err(storage_error)?;
    let mut step = |entry: std::result::Result<_, redb::StorageError>| {
        let (key, sealed): (redb::AccessGuard<'_, Bytes>, redb::AccessGuard<'_, Bytes>) =
            entry.map_err(storage_error)?;
        visit(key.value(), open(table, key.value(), sealed.value())?)
    };
    let walked = match order {
        Order::Ascending => range.skip(skip).try_for_each(|entry| flow(step(entry))),
        Order::Descending => range.rev().skip(skip).try_for_each(|entry| flow(step(entry))),
    };
    match walked {
        ControlFlow::Break(Err(error)) => Err(error),
        ControlFlow::Break(Ok(())) | ControlFlow::Continue(()) => Ok(()),
    }
}

fn flow(step: Result<ControlFlow<()>>) -> ControlFlow<Result<()>> {
    match step {
        Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
        Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
        Err(error) => ControlFlow::Break(Err(error)),
    }
}

/// One slot for each table.
pub(super) struct PerTable<T>([T; Table::ALL.len()]);

impl<T> PerTable<T> {
    pub(super) fn new(empty: impl Fn() -> T) -> Self {
        Self(std::array::from_fn(|_| empty()))
    }

    #[expect(clippy::indexing_slicing, reason = "there is a slot for each table")]
    pub(super) fn slot(&self, table: Table) -> &T {
        &self.0[table as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "there is a slot for each table")]
    pub(super) fn slot_mut(&mut self, table: Table) -> &mut T {
        &mut self.0[table as usize]
    }
}
