//! An array with one slot for each table.

use super::schema::Table;

/// One slot for each table, found by index instead of by hash.
pub(in crate::store) struct PerTable<T>([T; Table::ALL.len()]);

impl<T> PerTable<T> {
    pub(in crate::store) fn new(empty: impl Fn() -> T) -> Self {
        Self(std::array::from_fn(|_| empty()))
    }

    #[expect(clippy::indexing_slicing, reason = "there is a slot for each table")]
    pub(in crate::store) fn slot(&self, table: Table) -> &T {
        &self.0[table as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "there is a slot for each table")]
    pub(in crate::store) fn slot_mut(&mut self, table: Table) -> &mut T {
        &mut self.0[table as usize]
    }
}
