//! Which dashboards of a project a caller may see: what an answer about one dashboard tells of others is only of those.

use std::collections::HashMap;

use crate::access::InProject;
use crate::error::Result;
use crate::ids::DashboardId;
use crate::resources::access_controls::rules::Rule;
use crate::store::Tx;

use super::Dashboard;

/// Says of each dashboard whether the caller may see it; looks at each once.
pub(super) struct VisibleDashboards<'p> {
    place: &'p InProject,
    /// Whether no rule hides a dashboard from the caller.
    all: bool,
    known: HashMap<DashboardId, bool>,
}

impl<'p> VisibleDashboards<'p> {
    /// For a caller in a project. Without access rules, and for admins, no dashboard is looked at.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub(super) fn of(tx: &impl Tx, place: &'p InProject) -> Result<Self> {
        let all = place.member.level.administers() || tx.count::<Rule>(&place.project.id)? == 0;
        Ok(Self { place, all, known: HashMap::new() })
    }

    /// Whether the caller may see all dashboards.
    pub(super) const fn are_all(&self) -> bool {
        self.all
    }

    /// Whether the caller may see this dashboard.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub(super) fn shows(&mut self, tx: &impl Tx, id: DashboardId) -> Result<bool> {
        if self.all {
            return Ok(true);
        }
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let head = tx.head::<Dashboard>(&(self.place.project.id, id))?;
        let shown = match head {
            Some(head) => head.rights(tx, self.place)?.can_view(),
            None => false,
        };
        self.known.insert(id, shown);
        Ok(shown)
    }
}
