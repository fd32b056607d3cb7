//! Which dashboards of a project the caller may see. A response about one dashboard must not name a hidden
//! one.

use std::collections::HashMap;

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::DashboardId;
use crate::resources::access_controls::rules;
use crate::resources::access_objects::Kind;
use crate::store::Tx;

use super::Dashboard;

/// Decides whether the caller may see a dashboard, and caches the decision.
pub(super) struct VisibleDashboards<'p> {
    tenant: &'p InProject,
    /// Whether no access rule can hide a dashboard from the caller.
    all: bool,
    cache: HashMap<DashboardId, bool>,
}

impl<'p> VisibleDashboards<'p> {
    /// Starts an empty cache for a caller in a project. Admins, and all members of a project without access
    /// rules on dashboards, see every dashboard.
    pub(super) fn of(tx: &impl Tx, tenant: &'p InProject) -> Result<Self> {
        let all = tenant.member.level.is_admin()
            || !rules::exist(tx, tenant.project.id, Kind::Dashboard)?;
        Ok(Self { tenant, all, cache: HashMap::new() })
    }

    /// Returns whether the caller may see all dashboards.
    pub(super) const fn are_all(&self) -> bool {
        self.all
    }

    /// Returns whether the caller may see this dashboard.
    pub(super) fn shows(&mut self, tx: &impl Tx, id: DashboardId) -> Result<bool> {
        if self.all {
            return Ok(true);
        }
        if let Some(known) = self.cache.get(&id) {
            return Ok(*known);
        }
        let meta = tx.meta::<Dashboard>(&(self.tenant.project.id, id))?;
        let fields = match meta {
            Some(meta) => meta.rights(tx, self.tenant)?.can_view(),
            None => false,
        };
        self.cache.insert(id, fields);
        Ok(fields)
    }
}
