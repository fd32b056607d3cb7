//! The caller's rights on all insights of a project.

use crate::auth::InProject;
use crate::error::Result;
use crate::resources::access_controls::caller_levels::CallerLevels;
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::insights::{Insight, Meta};
use crate::resources::dashboards::tiles::MAX_LISTED;
use crate::store::Tx;

use super::rights::InsightView;

/// What decides the caller's rights on each insight of a project, read once for a list.
pub(super) struct CallerAccess<'p> {
    pub(super) levels: CallerLevels<'p, Insight>,
    pub(super) dashboards: VisibleDashboards<'p>,
}

impl<'p> CallerAccess<'p> {
    pub(super) fn of(tx: &impl Tx, tenant: &'p InProject) -> Result<Self> {
        let dashboards = VisibleDashboards::of(tx, tenant)?;
        Ok(Self { levels: CallerLevels::of(tx, tenant)?, dashboards })
    }

    /// Returns the caller in the project.
    pub(super) const fn tenant(&self) -> &'p InProject {
        self.levels.tenant
    }

    /// Returns the tiles that a list shows of an insight, and what the caller may do with it.
    pub(super) fn view(&mut self, tx: &impl Tx, insight: &Meta) -> Result<InsightView> {
        let level = self.levels.level(insight);
        InsightView::of(tx, insight, level, &mut self.dashboards, MAX_LISTED)
    }
}
