//! Which part of a list is read, and from which end.

use std::ops::ControlFlow;

use crate::error::Result;

use super::record::{Record, Row};

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the least key up.
    Ascending,
    /// From the greatest key down.
    Descending,
}

/// Which part of a list to show.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// How many to pass over.
    pub offset: usize,
    /// How many to show at the most.
    pub limit: usize,
    /// From which end.
    pub order: Order,
}

impl Window {
    /// Everything, in this order.
    pub const fn all(order: Order) -> Self {
        Self { offset: 0, limit: usize::MAX, order }
    }

    /// Whether there is anything to show of a list of `count` rows: one that begins behind its end need
    /// not be walked to it.
    pub fn begins_within(&self, count: u64) -> bool {
        u64::try_from(self.offset).is_ok_and(|offset| offset < count)
    }

    /// Whether the row at this position is within.
    pub const fn shows(&self, position: usize) -> bool {
        position >= self.offset && position - self.offset < self.limit
    }
}

/// Shows the rows that `keep` lets through, within `window` of those; breaks when that is full.
pub(super) fn kept<R: Record>(
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
