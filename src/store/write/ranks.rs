//! Keeping the ranks of lists up to date.

use crate::error::Result;

use super::super::ranks::{self, ChangedRow, RankWriter, RankedList, State};
use super::super::raw::read_number;
use super::super::schema::Table;
use super::super::sealed::damaged;
use super::WriteTx;

impl WriteTx<'_> {
    /// Notes rows of a list that were changed.
    pub(super) fn note_rows(
        &mut self,
        list: &'static RankedList,
        rows: Vec<ChangedRow>,
    ) -> Result<()> {
        let mut changes = std::mem::take(&mut self.rank_changes);
        for row in rows {
            changes.note(list, row, |list, tenant| ranks::state(self, list, tenant))?;
        }
        self.rank_changes = changes;
        Ok(())
    }

    /// Builds a part of the ranks of a tenant at the end of the batch.
    pub(in crate::store) fn build_ranks(
        &mut self,
        list: &'static RankedList,
        tenant: &[u8],
    ) -> Result<()> {
        let state = ranks::state(self, list, tenant)?;
        self.rank_changes.build(list, tenant, state.as_ref());
        Ok(())
    }

    /// Updates the ranks after changes were applied to the lists.
    pub(super) fn update_ranks(&mut self) -> Result<()> {
        for changes in std::mem::take(&mut self.rank_changes) {
            let list = changes.list;
            for (tenant, changes) in changes.tenants {
                let count = read_number(self, Table::Counts, &list.count_key(&tenant))?;
                self.table(Table::Ranks)?;
                self.table(list.table())?;
                let opened = self.tables.slot_mut(Table::Ranks).take();
                let mut opened = opened.ok_or_else(|| damaged(Table::Ranks, &"not open"))?;
                let mut noted = std::mem::take(&mut self.noted);
                let mut writer = RankWriter {
                    list,
                    tenant: &tenant,
                    ranks: &mut opened,
                    noted: &mut noted,
                    rows: self.table(list.table())?,
                };
                let state = writer.update(changes, count)?;
                self.noted = noted;
                drop(self.tables.slot(Table::Ranks).set(opened));
                let payload = state.as_ref().map(State::payload);
                self.hot.change(Table::Ranks, &list.state_key(&tenant), payload);
                self.are_ranks_due |= list.is_due(state.as_ref(), count);
            }
        }
        Ok(())
    }
}
