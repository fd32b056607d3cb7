//! The caller's rights on all insights of a project.

use std::collections::HashSet;

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::InsightId;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::insights::levels::InsightLevels;
use crate::resources::dashboards::insights::{Insight, Meta};
use crate::resources::dashboards::tiles::MAX_LISTED;
use crate::store::{Order, Tx, Window};

use super::rights::InsightView;

/// What decides the caller's rights on each insight of a project, read once for a list.
pub(super) struct CallerAccess<'p> {
    pub(super) tenant: &'p InProject,
    pub(super) dashboards: VisibleDashboards<'p>,
    levels: InsightLevels<'p>,
}

impl<'p> CallerAccess<'p> {
    pub(super) fn of(tx: &impl Tx, tenant: &'p InProject) -> Result<Self> {
        let dashboards = VisibleDashboards::of(tx, tenant)?;
        Ok(Self { tenant, dashboards, levels: InsightLevels::of(tx, tenant)? })
    }

    /// Returns the caller's level on an insight.
    pub(super) fn level(&self, insight: &Meta) -> AccessLevel {
        self.levels.level(insight)
    }

    /// Returns the tiles that a list shows of an insight, and what the caller may do with it.
    pub(super) fn view(&mut self, tx: &impl Tx, insight: &Meta) -> Result<InsightView> {
        let level = self.level(insight);
        InsightView::of(tx, insight, level, &mut self.dashboards, MAX_LISTED)
    }

    /// Returns the caller's level on all insights, without rules on single ones.
    pub(super) fn default_level(&self) -> AccessLevel {
        self.levels.default_level()
    }

    /// Requires that the caller may view insights in general, was granted access to at least one, or created at least
    /// one.
    pub(super) fn require_list(&self, tx: &impl Tx) -> Result<()> {
        let allowed = self.default_level().require(AccessLevel::Viewer);
        if allowed.is_ok() || self.levels.rules.grants_any() || self.owns_any(tx)? {
            return Ok(());
        }
        allowed
    }

    fn owns_any(&self, tx: &impl Tx) -> Result<bool> {
        let mut owns = false;
        let me = Some(self.tenant.member.user);
        let first = Window { offset: 0, limit: 1, order: Order::Ascending };
        let mine = |meta: &Meta| meta.created_by == me;
        tx.scan_where::<Insight, _>(&self.tenant.project.id, first, mine, |_| {
            owns = true;
            Ok(())
        })?;
        Ok(owns)
    }

    /// Returns the live insights that rules on single insights hide from the caller. These are all the hidden ones only
    /// if the caller's level on all insights allows viewing.
    pub(super) fn hidden(&self, tx: &impl Tx) -> Result<HashSet<InsightId>> {
        let mut hidden = HashSet::new();
        for id in self.levels.rules.restricted().map(InsightId) {
            let meta = tx.meta::<Insight>(&(self.tenant.project.id, id))?;
            if meta.is_some_and(|meta| !meta.deleted && !self.level(&meta).can_view()) {
                hidden.insert(id);
            }
        }
        Ok(hidden)
    }
}
