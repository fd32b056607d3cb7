//! Which part of a list is read, and from which end.

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
