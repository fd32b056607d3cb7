//! Decides which entries of a log a member may read.
//!
//! The current permissions apply to old entries too: an entry is hidden while the member may not see its project or its
//! dashboard. Counts leave hidden entries out.

use std::collections::{HashMap, HashSet};

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId};
use crate::resources::access_controls::levels::{self, DashboardAccessInput};
use crate::resources::access_controls::rules::CallerRules;
use crate::resources::access_objects::Kind;
use crate::resources::dashboards::{self, Dashboard};
use crate::resources::members::Membership;
use crate::resources::projects::{self, Project};
use crate::store::{Order, Tx, Window};

use super::entity_ref::EntityRef;
use super::{CountKey, Entry, Meta};

/// An activity log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogScope {
    /// The log of an organization, which includes its projects.
    Organization(OrganizationId),
    /// The log of a project in this organization.
    Project(OrganizationId, ProjectId),
}

impl LogScope {
    /// Returns the organization of the log.
    pub(super) const fn organization(self) -> OrganizationId {
        match self {
            Self::Organization(id) | Self::Project(id, _) => id,
        }
    }

    /// Returns the number of entries in the log, including hidden ones.
    fn length(self, tx: &impl Tx) -> Result<u64> {
        tx.count::<Entry>(&match self {
            Self::Organization(id) => CountKey::Organization(id),
            Self::Project(_, id) => CountKey::Project(id),
        })
    }

    /// Returns whether the log contains this entry of its organization.
    pub(super) fn holds(self, entry: &Meta) -> bool {
        match self {
            Self::Organization(_) => true,
            Self::Project(_, id) => entry.project == Some(id),
        }
    }
}

/// The entries of a log that a member may read.
pub struct Visibility {
    /// The log.
    pub(super) log: LogScope,
    /// The projects that the member may see, and for each project the dashboards that are hidden from the member.
    /// `None` if the member may read the whole log.
    projects: Option<HashMap<ProjectId, HashSet<DashboardId>>>,
}

impl Visibility {
    /// Returns what a member may read of the organization's log. Admins and owners may read all of it. Other members
    /// may not read entries of projects that they cannot see or that were deleted, of keys, or of dashboards that
    /// access controls hide from them.
    pub fn of_organization(tx: &impl Tx, member: &Membership) -> Result<Self> {
        let log = LogScope::Organization(member.organization);
        if can_read_all(member) {
            return Ok(Self { log, projects: None });
        }
        let member = std::slice::from_ref(member);
        let mut within = HashMap::new();
        for key in projects::list_visible(tx, member, None)? {
            if let (Some(project), [member]) = (tx.meta::<Project>(&key)?, member) {
                let tenant = InProject { member: member.clone(), project };
                within.insert(key.1, hidden_dashboards(tx, &tenant)?);
            }
        }
        Ok(Self { log, projects: Some(within) })
    }

    /// Returns what a member may read of a project's log, by the same rules.
    pub fn of_project(tx: &impl Tx, tenant: &InProject) -> Result<Self> {
        let project = tenant.project.id;
        let log = LogScope::Project(tenant.project.organization, project);
        if can_read_all(&tenant.member) {
            return Ok(Self { log, projects: None });
        }
        let hidden = hidden_dashboards(tx, tenant)?;
        Ok(Self { log, projects: Some(HashMap::from_iter([(project, hidden)])) })
    }

    /// Returns whether the member may read the entry.
    pub(super) fn shows(&self, entry: &Meta, entity: &EntityRef<'_>) -> bool {
        let Some(within) = &self.projects else { return true };
        match entry.project {
            None => !entity.is_for_admins(),
            Some(project) => within.get(&project).is_some_and(|hidden| {
                hidden.is_empty() || entity.dashboard().is_none_or(|id| !hidden.contains(&id))
            }),
        }
    }

    /// Returns the number of entries that the member may read, and whether that is the whole log.
    pub(super) fn count(&self, tx: &impl Tx) -> Result<(u64, bool)> {
        let length = self.log.length(tx)?;
        let Some(within) = &self.projects else { return Ok((length, true)) };
        let mut count = match self.log {
            LogScope::Organization(id) => tx.count::<Entry>(&CountKey::Open(id))?,
            LogScope::Project(..) => 0,
        };
        for (project, hidden) in within {
            let mut visible = tx.count::<Entry>(&CountKey::Project(*project))?;
            for dashboard in hidden {
                let hidden = tx.count::<Entry>(&CountKey::Dashboard(*project, *dashboard))?;
                visible = visible.saturating_sub(hidden);
            }
            count += visible;
        }
        Ok((count, count == length))
    }
}

/// Returns whether a member may read the whole log of the organization, so that no entry needs a check.
fn can_read_all(member: &Membership) -> bool {
    member.level.is_admin()
}

/// Returns the dashboards of a project, including deleted ones, that access controls hide from a member. Visits every
/// dashboard if a rule hides all of them by default.
fn hidden_dashboards(tx: &impl Tx, tenant: &InProject) -> Result<HashSet<DashboardId>> {
    let project = tenant.project.id;
    let ruling = CallerRules::of(tx, tenant, Kind::Dashboard)?;
    let mut hidden = HashSet::new();
    let mut look_at = |meta: &dashboards::Meta| {
        if is_hidden(tenant, &ruling, meta) {
            hidden.insert(meta.id);
        }
        Ok(())
    };
    if levels::default_level(&tenant.member, ruling.all).can_view() {
        for id in ruling.restricted().map(DashboardId) {
            tx.view::<Dashboard, _>(&(project, id), |row| look_at(&row.meta))?;
        }
    } else {
        let all = Window::all(Order::Ascending);
        tx.scan::<Dashboard, _>(&project, all, |row| look_at(&row.meta))?;
    }
    Ok(hidden)
}

/// Returns whether access controls hide the dashboard. Collaborators may edit, but the access rules decide whether they
/// see the dashboard.
fn is_hidden(tenant: &InProject, ruling: &CallerRules, dashboard: &dashboards::Meta) -> bool {
    let dashboards::Meta { created_by, restriction_level, id, .. } = *dashboard;
    let rule_level = ruling.on(id.0);
    let guarded =
        DashboardAccessInput { created_by, restriction_level, collaborator: None, rule_level };
    !levels::rights(&tenant.member, guarded).can_view()
}
