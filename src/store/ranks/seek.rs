//! Where to begin a walk that skips many rows.

use std::ops::ControlFlow;

use crate::error::Result;

use super::super::key::prefix_end;
use super::super::raw::Raw;
use super::super::schema::Table;
use super::super::sealed::damaged;
use super::super::window::Order;
use super::RankedList;
use super::layout::{Height, Span, State, state};

/// The range of a walk, and how many of its first rows to skip.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) struct WalkStart {
    from: Vec<u8>,
    until: Option<Vec<u8>>,
    pub(in crate::store) skip: usize,
}

impl WalkStart {
    /// Returns the range, from the first key up to, but not including, the second.
    pub(in crate::store) fn span(&self) -> (&[u8], Option<&[u8]>) {
        (&self.from, self.until.as_deref())
    }
}

/// Returns where to begin a walk over the rows of `tenant` that skips `skip` of them. Without complete ranks that is the
/// first row.
pub(in crate::store) fn start_of_walk(
    tx: &(impl Raw + ?Sized),
    list: Option<&RankedList>,
    tenant: &[u8],
    (skip, order): (usize, Order),
) -> Result<WalkStart> {
    let whole = || WalkStart { from: tenant.to_vec(), until: prefix_end(tenant), skip };
    let is_ranked = |list: &&RankedList| {
        tenant.len() == list.tenant_size && skip >= list.limits.min_skip && tx.has_ranks()
    };
    let Some(list) = list.filter(is_ranked) else { return Ok(whole()) };
    match seek(tx, list, tenant, (skip, order)) {
        Ok(found) => Ok(found.unwrap_or_else(whole)),
        Err(error) if error.status() == 503 => Err(error),
        Err(error) => {
            tracing::error!(%error, "the ranks of a list are damaged; walking from its start");
            Ok(whole())
        }
    }
}

fn seek(
    tx: &(impl Raw + ?Sized),
    list: &RankedList,
    tenant: &[u8],
    (skip, order): (usize, Order),
) -> Result<Option<WalkStart>> {
    if state(tx, list, tenant)? != Some(State::Complete) {
        return Ok(None);
    }
    let mut left = u64::try_from(skip).unwrap_or(u64::MAX);
    let end = prefix_end(tenant);
    let groups = Range { list, height: Height::Group, order };
    let Some(group) = groups.pass(tx, (tenant, end.as_deref()), &mut left)? else {
        // There are fewer rows than the walk skips.
        return Ok(Some(WalkStart {
            from: tenant.to_vec(),
            until: Some(tenant.to_vec()),
            skip: 0,
        }));
    };
    let buckets = Range { height: Height::Bucket, ..groups };
    let group_end = list.next_first(tx, Height::Group, (&group.first, end.as_deref()))?;
    let within = (group.first.as_slice(), group_end.as_deref());
    let bucket = buckets.pass(tx, within, &mut left)?;
    let bucket = bucket.ok_or_else(|| damaged(Table::Ranks, &"a group has too few rows"))?;
    let skip = usize::try_from(left).unwrap_or(usize::MAX);
    Ok(Some(match order {
        Order::Ascending => WalkStart { from: bucket.first, until: end, skip },
        Order::Descending => {
            let until = list.next_first(tx, Height::Bucket, (&bucket.first, end.as_deref()))?;
            WalkStart { from: tenant.to_vec(), until, skip }
        }
    }))
}

/// The buckets or groups of a list, in one order.
struct Range<'l> {
    list: &'l RankedList,
    height: Height,
    order: Order,
}

impl Range<'_> {
    /// Passes over those between two keys while they have no more rows than `left`, and subtracts their rows from
    /// `left`. Returns the first one with more rows.
    fn pass(
        &self,
        tx: &(impl Raw + ?Sized),
        span: (&[u8], Option<&[u8]>),
        left: &mut u64,
    ) -> Result<Option<Span>> {
        let mut found = None;
        self.walk(tx, span, &mut |span| {
            let Some(rest) = left.checked_sub(span.rows) else {
                found = Some(span);
                return Ok(ControlFlow::Break(()));
            };
            *left = rest;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    fn walk(
        &self,
        tx: &(impl Raw + ?Sized),
        (from, until): (&[u8], Option<&[u8]>),
        visit: &mut dyn FnMut(Span) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (from, until) = self.list.keys(self.height, (from, until));
        let span = (from.as_slice(), until.as_deref());
        let head = self.list.head_size();
        tx.raw_between(Table::Ranks, span, 0, self.order, &mut |key, payload| {
            visit(Span::parse(key.get(head..).unwrap_or_default(), payload)?)
        })
    }
}

impl RankedList {
    /// Returns the key at which the bucket or group after the one at `first` begins, or `end` if there is none before it.
    pub(super) fn next_first(
        &self,
        tx: &(impl Raw + ?Sized),
        height: Height,
        (first, end): (&[u8], Option<&[u8]>),
    ) -> Result<Option<Vec<u8>>> {
        let mut next = end.map(<[u8]>::to_vec);
        let after = [first, &[0]].concat();
        let spans = Range { list: self, height, order: Order::Ascending };
        spans.walk(tx, (&after, end), &mut |span| {
            next = Some(span.first);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(next)
    }
}
