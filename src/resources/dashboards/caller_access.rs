//! The caller's rights on all dashboards of a project.

use std::collections::HashMap;

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::DashboardId;
use crate::resources::access_controls::caller_levels::CallerLevels;
use crate::resources::access_controls::levels::DashboardRights;
use crate::resources::collaborators;
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

    /// Returns the caller in the project.
    pub(super) const fn tenant(&self) -> &'p InProject {
        self.levels.tenant
    }

    /// Returns what the caller may do with a dashboard.
    pub(super) fn rights(&self, dashboard: &Meta) -> DashboardRights {
        let collaborator = self.collaborator_levels.get(&dashboard.id).copied();
        let ruled = self.levels.ruled(dashboard);
        dashboard.rights_given(&self.tenant().member, collaborator, ruled)
    }
}
