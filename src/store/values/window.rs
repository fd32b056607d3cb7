//! The part and the direction of a list that a walk reads.

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the least key to the greatest.
    Ascending,
    /// From the greatest key to the least.
    Descending,
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
