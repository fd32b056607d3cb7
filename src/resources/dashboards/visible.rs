//! The caller's rights on the dashboards of a project. A response about one object must not name a hidden dashboard.

use std::collections::HashMap;

use crate::auth::InProject;
use crate::base::error::Result;
use crate::ids::DashboardId;
use crate::resources::access_controls::levels::ObjectRights;
use crate::resources::access_controls::rules;
use crate::resources::access_controls::shared::CallerLevels;
use crate::resources::collaborators;
use crate::resources::shared::access_objects::Kind;
use crate::store::Tx;

use super::{Dashboard, Meta};

/// What decides the caller's rights on each dashboard of a project, read once for a list.
pub(super) struct CallerAccess<'p> {
    pub(super) levels: CallerLevels<'p, Dashboard>,
    collaborator_levels: HashMap<DashboardId, i64>,
}

impl<'p> CallerAccess<'p> {
    pub(super) fn of(tx: &impl Tx, tenant: &'p InProject) -> Result<Self> {
        let collaborator_levels = collaborators::levels(tx, tenant)?;
        Ok(Self { levels: CallerLevels::of(tx, tenant)?, collaborator_levels })
    }

    /// Returns what the caller may do with a dashboard.
    pub(super) fn rights(&self, dashboard: &Meta) -> ObjectRights {
        let collaborator = self.collaborator_levels.get(&dashboard.id).copied();
        let ruled = self.levels.ruled(dashboard);
        dashboard.rights_given(&self.levels.tenant.member, collaborator, ruled)
    }
}

/// Decides what the caller may do with a dashboard, and caches the decision.
pub struct VisibleDashboards<'p> {
    tenant: &'p InProject,
    /// Whether no access rule can hide a dashboard from the caller.
    all: bool,
    /// What decides the rights on each dashboard, read when first needed.
    access: Option<CallerAccess<'p>>,
    cache: HashMap<DashboardId, Option<ObjectRights>>,
}

impl<'p> VisibleDashboards<'p> {
    /// Starts an empty cache for a caller in a project. Admins, and all members of a project without access
    /// rules on dashboards, see every dashboard.
    pub fn of(tx: &impl Tx, tenant: &'p InProject) -> Result<Self> {
        let all = tenant.member.level.is_admin()
            || !rules::exist(tx, tenant.project.id, Kind::Dashboard)?;
        Ok(Self { tenant, all, access: None, cache: HashMap::new() })
    }

    /// Returns the caller in the project.
    pub const fn tenant(&self) -> &'p InProject {
        self.tenant
    }

    /// Returns whether the caller may see all dashboards.
    pub(super) const fn are_all(&self) -> bool {
        self.all
    }

    /// Returns whether the caller may see this dashboard.
    pub fn shows(&mut self, tx: &impl Tx, id: DashboardId) -> Result<bool> {
        Ok(self.all || self.rights(tx, id)?.is_some_and(|rights| rights.can_view()))
    }

    /// Returns what the caller may do with a dashboard; `None` if the dashboard does not exist.
    pub fn rights(&mut self, tx: &impl Tx, id: DashboardId) -> Result<Option<ObjectRights>> {
        if let Some(known) = self.cache.get(&id) {
            return Ok(*known);
        }
        let access = match &self.access {
            Some(access) => access,
            None => self.access.insert(CallerAccess::of(tx, self.tenant)?),
        };
        let meta = tx.meta::<Dashboard>(&(self.tenant.project.id, id))?;
        let rights = meta.map(|meta| access.rights(&meta));
        self.cache.insert(id, rights);
        Ok(rights)
    }
}
