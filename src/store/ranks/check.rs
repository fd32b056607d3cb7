//! Comparing the ranks with the lists.

use std::ops::ControlFlow;

use crate::error::Result;

use super::super::check_report::CheckReport;
use super::super::raw::Raw;
use super::super::schema::Table;
use super::super::sealed::HexKey;
use super::super::snapshot::Snapshot;
use super::super::window::Order;
use super::RankedList;
use super::layout::{Height, Span, state};

/// Checks all values of [`Table::Ranks`].
pub(in crate::store) fn check(
    tx: &Snapshot,
    lists: &[&RankedList],
    report: &mut CheckReport,
) -> Result<()> {
    tx.each(Table::Ranks, &mut |key, payload| {
        report.count_value();
        match payload {
            Ok(payload) => check_value(tx, lists, (key, payload), report),
            Err(error) => {
                report.problem(Table::Ranks, error);
                Ok(())
            }
        }
    })
}

/// Checks a value of [`Table::Ranks`]: that the tenant has ranks, and that a bucket has as many rows as it says, and a
/// group as many rows and buckets.
pub(in crate::store) fn check_value(
    tx: &Snapshot,
    lists: &[&RankedList],
    value: (&[u8], &[u8]),
    report: &mut CheckReport,
) -> Result<()> {
    match compare(tx, lists, value, report) {
        Err(error) if error.status() == 500 => {
            report.problem(Table::Ranks, error);
            Ok(())
        }
        compared => compared,
    }
}

fn compare(
    tx: &Snapshot,
    lists: &[&RankedList],
    (key, payload): (&[u8], &[u8]),
    report: &mut CheckReport,
) -> Result<()> {
    let found = lists.iter().find_map(|list| Some((*list, list.split(key)?)));
    let Some((list, (height, tenant, first))) = found else {
        report.problem(Table::Ranks, format_args!("a value belongs to no list, {}", HexKey(key)));
        return Ok(());
    };
    let Some(state) = state(tx, list, tenant)? else {
        let text = format_args!("a value belongs to a tenant without ranks, {}", HexKey(key));
        report.problem(Table::Ranks, text);
        return Ok(());
    };
    let end = state.end(tenant);
    let is_built = |key: &[u8]| end.as_deref().is_none_or(|end| key < end);
    if height == Height::Tenant {
        for height in [Height::Bucket, Height::Group] {
            if is_built(tenant) && !tx.has(Table::Ranks, &list.key(height, tenant))? {
                let text = format_args!("a tenant has no first part, {}", HexKey(key));
                report.problem(Table::Ranks, text);
            }
        }
        return Ok(());
    }
    if !is_built(first) {
        return Ok(());
    }
    let until = list.next_first(tx, height, (first, end.as_deref()))?;
    let stored = Span::parse(first, payload)?;
    let (rows, parts) = list.count(tx, height, (first, until.as_deref()))?;
    if (rows, parts) != (stored.rows, stored.parts) {
        let (key, stored) = (HexKey(key), (stored.rows, stored.parts));
        let text = format_args!("the part {key} has {stored:?}, expected {:?}", (rows, parts));
        report.problem(Table::Ranks, text);
    }
    Ok(())
}

impl RankedList {
    /// Splits a key of [`Table::Ranks`] into the height, the tenant and the key of the list.
    fn split<'k>(&self, key: &'k [u8]) -> Option<(Height, &'k [u8], &'k [u8])> {
        let (head, rest) = key.split_at_checked(self.head_size())?;
        let tenant = self.tenant_of(rest)?;
        let heights = [Height::Tenant, Height::Bucket, Height::Group];
        let height = heights.into_iter().find(|height| head == self.key(*height, &[]))?;
        (height != Height::Tenant || tenant == rest).then_some((height, tenant, rest))
    }

    /// Counts the rows or buckets from `from` up to `until`. Returns the rows and the number of parts.
    fn count(
        &self,
        tx: &Snapshot,
        height: Height,
        (from, until): (&[u8], Option<&[u8]>),
    ) -> Result<(u64, u64)> {
        let (mut rows, mut parts) = (0, 0);
        let mut visit = |key: &[u8], payload: &[u8]| {
            let added = match (height, self.shows) {
                (Height::Group, _) => Some(Span::parse(key, payload)?.rows),
                (_, Some(shows)) => shows(payload)?.then_some(1),
                (_, None) => Some(1),
            };
            rows += added.unwrap_or(0);
            parts += u64::from(added.is_some());
            Ok(ControlFlow::Continue(()))
        };
        if height == Height::Group {
            let (from, until) = self.keys(Height::Bucket, (from, until));
            let span = (from.as_slice(), until.as_deref());
            tx.raw_between(Table::Ranks, span, 0, Order::Ascending, &mut visit)?;
        } else {
            tx.raw_between(self.table, (from, until), 0, Order::Ascending, &mut visit)?;
        }
        Ok((rows, parts))
    }
}
