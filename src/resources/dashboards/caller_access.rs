//! The caller's rights on all dashboards of a project.

use std::collections::{HashMap, HashSet};

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::DashboardId;
use crate::resources::access_controls::levels::{self, AccessLevel, DashboardRights};
use crate::resources::access_controls::rules::CallerRules;
use crate::resources::access_objects::Kind;
use crate::resources::collaborators;
use crate::store::{Order, Tx, Window};

use super::{Dashboard, Meta};

/// What decides the caller's rights on each dashboard of a project, read once for a list.
pub(super) struct CallerAccess<'p> {
    pub(super) tenant: &'p InProject,
    collaborator_levels: HashMap<DashboardId, i64>,
    caller_rules: CallerRules,
}

impl<'p> CallerAccess<'p> {
    pub(super) fn of(tx: &impl Tx, tenant: &'p InProject) -> Result<Self> {
        let collaborator_levels = collaborators::levels(tx, tenant)?;
        // Access rules do not apply to admins.
        let ruled = !tenant.member.level.is_admin();
        let caller_rules = if ruled {
            CallerRules::of(tx, tenant, Kind::Dashboard)?
        } else {
            CallerRules::default()
        };
        Ok(Self { tenant, collaborator_levels, caller_rules })
    }

    /// Returns what the caller may do with a dashboard.
    pub(super) fn rights(&self, dashboard: &Meta) -> DashboardRights {
        let collaborator = self.collaborator_levels.get(&dashboard.id).copied();
        dashboard.rights_given(self.tenant, collaborator, self.caller_rules.on(dashboard.id.0))
    }

    /// Returns the caller's level on all dashboards, without rules on single ones.
    pub(super) fn default_level(&self) -> AccessLevel {
        levels::default_level(&self.tenant.member, self.caller_rules.all)
    }

    /// Returns whether no access rule hides a dashboard from the caller.
    pub(super) fn sees_all(&self) -> bool {
        self.default_level().can_view() && self.caller_rules.restricted().next().is_none()
    }

    /// Requires that the caller may view dashboards in general, was granted access to at least one, or
    /// created at least one.
    pub(super) fn require_list(&self, tx: &impl Tx) -> Result<()> {
        let allowed = self.default_level().require(AccessLevel::Viewer);
        if allowed.is_ok() || self.caller_rules.grants_any() || self.owns_any(tx)? {
            return Ok(());
        }
        allowed
    }

    fn owns_any(&self, tx: &impl Tx) -> Result<bool> {
        let mut owns = false;
        let me = Some(self.tenant.member.user);
        let first = Window { offset: 0, limit: 1, order: Order::Ascending };
        let mine = |meta: &Meta| meta.created_by == me;
        tx.scan_where::<Dashboard, _>(&self.tenant.project.id, first, mine, |_| {
            owns = true;
            Ok(())
        })?;
        Ok(owns)
    }

    /// Returns the live dashboards that rules on single dashboards hide from the caller. These are all the
    /// hidden ones only if the caller's level on all dashboards allows viewing.
    pub(super) fn hidden(&self, tx: &impl Tx) -> Result<HashSet<DashboardId>> {
        let mut hidden = HashSet::new();
        for id in self.caller_rules.restricted().map(DashboardId) {
            let meta = tx.meta::<Dashboard>(&(self.tenant.project.id, id))?;
            if meta.is_some_and(|meta| !meta.deleted && !self.rights(&meta).can_view()) {
                hidden.insert(id);
            }
        }
        Ok(hidden)
    }
}
