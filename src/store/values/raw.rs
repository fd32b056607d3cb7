//! Access to keys and payloads, from a snapshot or from a write under way, and the part of a list that a walk reads.

use std::ops::ControlFlow;

use crate::base::error::Result;

use super::key::{Key, prefix_end};
use super::payload::damaged;
use super::schema::Table;

/// Called with a verified payload.
pub type VisitValue<'v> = dyn FnMut(&[u8]) -> Result<()> + 'v;

/// Called with a key and its verified payload; decides whether the walk continues.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>> + 'v;

/// Returns whether a walk continues.
pub const fn continue_if(wanted: bool) -> ControlFlow<()> {
    if wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// What a walk visits: the keys from `from` up to, but not including, `until`.
#[derive(Debug, Clone, Copy)]
pub struct KeySpan<'k> {
    /// The first key that may be in the span.
    pub from: &'k [u8],
    /// The first key behind the span; `None` for the end of the table.
    pub until: Option<&'k [u8]>,
    /// How many of these keys the walk skips.
    pub skip: usize,
    /// The direction of the walk.
    pub order: Order,
}

/// Access to keys and payloads, which both kinds of transaction provide. Rules that only read take a `&dyn Raw`, so that they
/// are compiled once.
pub trait Raw {
    /// Calls `visit` with the verified payload under `key`. Does not call it if the key is absent.
    #[doc(hidden)]
    fn raw_get(&self, table: Table, key: &[u8], visit: &mut VisitValue<'_>) -> Result<()>;

    /// Calls `visit` with each key of `span`, until `visit` breaks.
    #[doc(hidden)]
    fn raw_between(&self, table: Table, span: KeySpan<'_>, visit: &mut Visit<'_>) -> Result<()>;

    /// Returns the transaction without its type. Code that takes it is compiled once, and not for each kind of transaction.
    #[doc(hidden)]
    fn as_dyn(&self) -> &dyn Raw;

    /// Calls `visit` with each key that begins with `prefix`, after the first `skip` keys, until `visit` breaks.
    #[doc(hidden)]
    fn raw_walk(
        &self,
        table: Table,
        prefix: &[u8],
        skip: usize,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let until = prefix_end(prefix);
        let span = KeySpan { from: prefix, until: until.as_deref(), skip, order };
        self.raw_between(table, span, visit)
    }
}

/// Returns what `read` returns for the verified payload under `key`, or `None` if the key is absent.
pub fn read_value<T>(
    tx: &dyn Raw,
    table: Table,
    key: &[u8],
    read: &dyn Fn(&[u8]) -> Result<T>,
) -> Result<Option<T>> {
    let mut value = None;
    tx.raw_get(table, key, &mut |payload| {
        value = Some(read(payload)?);
        Ok(())
    })?;
    Ok(value)
}

/// Returns the number under `key`, or 0 if the key is absent.
pub fn read_number(tx: &dyn Raw, table: Table, key: &[u8]) -> Result<u64> {
    Ok(read_value(tx, table, key, &|payload| number_in(table, payload))?.unwrap_or(0))
}

/// Returns the number in a payload of `table`.
pub fn number_in(table: Table, mut payload: &[u8]) -> Result<u64> {
    u64::read(&mut payload).ok_or_else(|| damaged(table, &"not a number"))
}

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the least key to the greatest.
    Ascending,
    /// From the greatest key to the least.
    Descending,
}

impl Order {
    /// Returns entries, which are given in ascending order, in this order.
    pub(in crate::store) fn of<E>(
        self,
        mut entries: impl DoubleEndedIterator<Item = E>,
    ) -> impl Iterator<Item = E> {
        std::iter::from_fn(move || match self {
            Self::Ascending => entries.next(),
            Self::Descending => entries.next_back(),
        })
    }
}

/// The part of a list to show.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// How many rows to skip.
    pub offset: usize,
    /// How many rows to show at most.
    pub limit: usize,
    /// The direction of the walk.
    pub order: Order,
}

impl Window {
    /// The whole list, in this order.
    pub const fn all(order: Order) -> Self {
        Self { offset: 0, limit: usize::MAX, order }
    }

    /// Whether the window begins within a list of `count` rows. If not, the list need not be walked.
    pub fn begins_within(&self, count: u64) -> bool {
        u64::try_from(self.offset).is_ok_and(|offset| offset < count)
    }

    /// Whether the row at this position is in the window.
    pub const fn shows(&self, position: usize) -> bool {
        position >= self.offset && position - self.offset < self.limit
    }
}
