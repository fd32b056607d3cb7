//! Building the ranks of tenants whose lists became large.

use std::ops::ControlFlow;

use crate::error::Result;

use super::super::key::{Key, prefix_end};
use super::super::raw::Raw;
use super::super::schema::Table;
use super::super::window::Order;
use super::RankedList;
use super::layout::{Height, Span, State, state};
use super::update::{Delta, Parts, RankWriter};

/// How many tenants one search returns at most.
const MAX_FOUND: usize = 100;

/// Returns tenants of a list that should have ranks and whose ranks are not complete, after the tenant `after`.
pub(in crate::store) fn find_due(
    tx: &impl Raw,
    list: &RankedList,
    after: &[u8],
) -> Result<Vec<Vec<u8>>> {
    let prefix = list.count_key(&[]);
    let from =
        if after.is_empty() { prefix.clone() } else { list.count_key(&[after, &[0]].concat()) };
    let mut due = Vec::new();
    let span = (from.as_slice(), prefix_end(&prefix));
    tx.raw_between(
        Table::Counts,
        (span.0, span.1.as_deref()),
        0,
        Order::Ascending,
        &mut |key, payload| {
            let tenant = key.get(prefix.len()..).unwrap_or_default();
            // The records of a list may have other counts too, of other tenants.
            let count = u64::read(&mut &*payload).filter(|_| tenant.len() == list.tenant_size);
            let is_due = match count {
                Some(count) if count >= list.limits.keep_from => {
                    list.is_due(state(tx, list, tenant)?.as_ref(), count)
                }
                _ => false,
            };
            if is_due {
                due.push(tenant.to_vec());
            }
            Ok(if due.len() < MAX_FOUND {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        },
    )?;
    Ok(due)
}

impl RankWriter<'_, '_> {
    /// Builds the ranks of the next rows from `from` on. Returns the new state.
    pub(super) fn build(&mut self, from: &[u8]) -> Result<State> {
        let limits = self.list.limits;
        let tenant_end = prefix_end(self.tenant);
        let (mut visited, mut next) = (0, None);
        let mut parts = Parts::new(from, limits.max_parts / 2);
        self.list.each_row(self.rows, (from, tenant_end.as_deref()), |key, is_shown| {
            if visited == limits.rows_per_build {
                next = Some(key.to_vec());
                return Ok(ControlFlow::Break(()));
            }
            visited += 1;
            if is_shown {
                parts.add(key, 1);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let built = next.map_or(State::Complete, State::Building);
        let end = built.end(self.tenant);
        for height in [Height::Bucket, Height::Group] {
            self.remove_between(height, (from, end.as_deref()))?;
        }
        if from == self.tenant {
            let group = Span { first: from.to_vec(), rows: 0, parts: 0 };
            self.put(Height::Group, from, &group.payload())?;
        }
        let mut above = Vec::new();
        for bucket in parts {
            // Only the first bucket of a tenant may be empty.
            if bucket.rows == 0 && bucket.first != self.tenant {
                continue;
            }
            self.put(Height::Bucket, &bucket.first, &bucket.payload())?;
            above.push(Delta { key: bucket.first, rows: bucket.rows.cast_signed(), parts: 1 });
        }
        self.apply_to(Height::Group, &above, end.as_deref())?;
        Ok(built)
    }
}
