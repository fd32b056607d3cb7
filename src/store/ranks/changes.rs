//! The rows that a batch added to ranked lists and removed from them.

use std::collections::BTreeMap;

use crate::error::Result;

use super::super::schema::Table;
use super::{RankedList, State};

/// The changes of a batch to the ranked lists.
#[derive(Default)]
pub(in crate::store) struct RankChanges(Vec<ListChanges>);

/// The changes of a batch to one list, by tenant.
pub(in crate::store) struct ListChanges {
    pub(in crate::store) list: &'static RankedList,
    pub(in crate::store) tenants: BTreeMap<Vec<u8>, TenantChanges>,
}

/// The changes of a batch to the list of one tenant.
pub(in crate::store) struct TenantChanges {
    /// The state of the ranks before the batch. `None` if the tenant has no ranks.
    pub(super) state: Option<State>,
    /// The keys whose rows changed: 1 for an added row, -1 for a removed row, and 0 for neither. Empty if the tenant has
    /// no ranks.
    pub(super) rows: BTreeMap<Vec<u8>, i64>,
    /// Whether the ranks must be built again, because a changed row could not be read.
    pub(super) are_lost: bool,
    /// Whether to build a part of the ranks.
    pub(super) builds: bool,
}

/// A row that a batch changed: its key, and 1 if it was added to the list, or -1 if it was removed. The error if a value of
/// the row could not be read.
pub(in crate::store) type ChangedRow = (Vec<u8>, Result<i64>);

impl RankedList {
    /// Returns the change of a row from one sealed value to another, if the row is added to the list or removed from it.
    pub(in crate::store) fn changed_row(
        &self,
        key: &[u8],
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Option<ChangedRow> {
        let shows = |sealed| self.shows(key, sealed).map(i64::from);
        let added = shows(after).and_then(|after| Ok(after - shows(before)?));
        (!matches!(added, Ok(0))).then(|| (key.to_vec(), added))
    }
}

impl RankChanges {
    /// Collects the changes of this list from now on.
    pub(in crate::store) fn watch(&mut self, list: &'static RankedList) {
        if self.list(list.table).is_none() {
            self.0.push(ListChanges { list, tenants: BTreeMap::new() });
        }
    }

    /// Returns the list that walks `table`, if its changes are collected.
    pub(in crate::store) fn list(&self, table: Table) -> Option<&'static RankedList> {
        self.0.iter().map(|changes| changes.list).find(|list| list.table == table)
    }

    /// Whether the batch is to build a part of the ranks of a tenant.
    pub(in crate::store) fn builds(&self) -> bool {
        let tenants = self.0.iter().flat_map(|changes| changes.tenants.values());
        tenants.into_iter().any(|tenant| tenant.builds)
    }

    /// Requests to build a part of the ranks of a tenant. `state` is the state of these ranks.
    pub(in crate::store) fn build(
        &mut self,
        list: &'static RankedList,
        tenant: &[u8],
        state: Option<&State>,
    ) {
        self.watch(list);
        for changes in self.0.iter_mut().filter(|changes| changes.list.table == list.table) {
            let known = changes.tenants.entry(tenant.to_vec());
            known.or_insert_with(|| TenantChanges::new(state.cloned())).builds = true;
        }
    }

    /// Adds a changed row of a list. `state` returns the state of the ranks of a tenant.
    pub(in crate::store) fn note(
        &mut self,
        list: &RankedList,
        row: ChangedRow,
        state: impl FnOnce(&RankedList, &[u8]) -> Result<Option<State>>,
    ) -> Result<()> {
        let found = self.0.iter_mut().find(|changes| changes.list.table == list.table);
        found.map_or(Ok(()), |changes| changes.note(row, state))
    }
}

impl IntoIterator for RankChanges {
    type Item = ListChanges;
    type IntoIter = std::vec::IntoIter<ListChanges>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl ListChanges {
    fn note(
        &mut self,
        (key, added): ChangedRow,
        state: impl FnOnce(&RankedList, &[u8]) -> Result<Option<State>>,
    ) -> Result<()> {
        let list = self.list;
        let Some(tenant) = list.tenant_of(&key) else { return Ok(()) };
        if !self.tenants.contains_key(tenant) {
            let changes = TenantChanges::new(state(list, tenant)?);
            self.tenants.insert(tenant.to_vec(), changes);
        }
        if let Some(changes) = self.tenants.get_mut(tenant).filter(|it| it.state.is_some()) {
            match added {
                Ok(added) => *changes.rows.entry(key).or_default() += added,
                Err(_) => changes.are_lost = true,
            }
        }
        Ok(())
    }
}

impl TenantChanges {
    /// Returns no changes of a tenant with ranks in this state.
    const fn new(state: Option<State>) -> Self {
        Self { state, rows: BTreeMap::new(), are_lost: false, builds: false }
    }
}
