//! Reading records: what a snapshot and a write under way have in common, and the snapshot.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

use super::key::{Key, after};
use super::record::{self, Index, Indexed, Named, Record, Row, damaged, split_entry};
use super::schema::Table;
use super::window::{Order, Window, kept};

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

    /// Hands each key from `from` on, and before `until` where that is given, to `visit`, past the first `skip`
    /// ones, until it breaks.
    #[doc(hidden)]
    fn raw_between(
        &self,
        table: Table,
        span: (&[u8], Option<&[u8]>),
        skip: usize,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()>;

    /// Does the same with each key that begins with `prefix`.
    #[doc(hidden)]
    fn raw_walk(
        &self,
        table: Table,
        prefix: &[u8],
        skip: usize,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.raw_between(table, (prefix, after(prefix).as_deref()), skip, order, visit)
    }
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
        let prefix = prefix.encoded();
        let (skip, order, is_page) = (window.offset, window.order, window.limit <= PAGE);
        self.raw_walk(index.table(), &prefix, skip, order, &mut |key, entry| {
            self.raw_entry(index, (is_page.then_some(key), entry), &mut |row| {
                visit(row)?;
                left -= 1;
                Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })
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
        self.raw_walk(index.table(), &prefix, skip, order, &mut |_, entry| {
            self.raw_entry(index, (None, entry), &mut visit)
        })
    }

    /// Walks the records whose index keys, with their primary keys behind, lie from `from` on and before
    /// `until`, in descending order, until `visit` breaks.
    ///
    /// # Errors
    /// What `visit` answers; 500 when an index entry leads nowhere.
    fn walk_down<R: Record, K: Key, S: Key>(
        &self,
        index: &Index<R, K>,
        from: &S,
        until: &S,
        mut visit: impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (from, until) = (from.encoded(), until.encoded());
        let span = (from.as_slice(), Some(until.as_slice()));
        self.raw_between(index.table(), span, 0, Order::Descending, &mut |_, entry| {
            self.raw_entry(index, (None, entry), &mut visit)
        })
    }

    /// Walks the records whose index keys begin with `prefix` and, with their primary keys behind, lie from `from` on,
    /// in ascending order, until `visit` breaks.
    ///
    /// # Errors
    /// What `visit` answers; 500 when an index entry leads nowhere.
    fn walk_from<R: Record, K: Key, P: Key, S: Key>(
        &self,
        index: &Index<R, K>,
        prefix: &P,
        from: &S,
        mut visit: impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (from, until) = (from.encoded(), after(&prefix.encoded()));
        self.raw_between(
            index.table(),
            (&from, until.as_deref()),
            0,
            Order::Ascending,
            &mut |_, entry| self.raw_entry(index, (None, entry), &mut visit),
        )
    }

    /// Walks the records whose primary keys lie from `from` on and before `until`, until `visit` breaks.
    ///
    /// # Errors
    /// What `visit` answers; 500 or 503 when the file cannot be read.
    fn scan_between<R: Record, S: Key>(
        &self,
        from: &S,
        until: &S,
        order: Order,
        mut visit: impl FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (from, until) = (from.encoded(), until.encoded());
        let span = (from.as_slice(), Some(until.as_slice()));
        self.raw_between(R::TABLE, span, 0, order, &mut |_, payload| visit(Row::read(payload)?))
    }

    /// Hands the record that an index entry leads to, or holds, to `visit`; where the entry's key is given, the
    /// record must belong there.
    #[doc(hidden)]
    fn raw_entry<R: Record, K: Key>(
        &self,
        index: &Index<R, K>,
        (key, entry): (Option<&[u8]>, &[u8]),
        visit: &mut dyn FnMut(Row<'_, R>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        match split_entry(index.form(), entry) {
            Some((_, Some(payload))) => visit(Row::read(payload)?),
            Some((primary, None)) => {
                let mut flow = None;
                self.raw_get(R::TABLE, primary, &mut |payload| {
                    if let Some(key) = key {
                        require_place(index, key, payload)?;
                    }
                    flow = Some(visit(Row::read(payload)?)?);
                    Ok(())
                })?;
                let text = format_args!("an entry leads to no record under {}", Named(primary));
                flow.ok_or_else(|| damaged(index.table(), &text))
            }
            None => Err(damaged(index.table(), &"an entry holds no record")),
        }
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

/// So many records are a page; who walks more looks for something.
const PAGE: usize = 1000;

/// A record that a page shows stands where the index has it. One whose index holds it whole does by its checksum.
fn require_place<R: Record, K: Key>(index: &Index<R, K>, key: &[u8], payload: &[u8]) -> Result<()> {
    let record = Row::<R>::read(payload)?.into_record()?;
    if index.entry(&record).as_deref() == Some(key) {
        return Ok(());
    }
    let text = format_args!("an entry under {} leads to a record of another place", Named(key));
    Err(damaged(index.table(), &text))
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
