//! Access rules on dashboards, and which of them decides. See `docs/spec/access-controls.md`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId, UserId};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::members::Membership;
use crate::resources::projects::{self, Project};
use crate::store::{Index, Key, Order, Reference, Table, Tx, Window, WriteTx, impl_record};
use crate::time::Timestamp;

/// An access rule on one dashboard, or on all dashboards of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccessRule {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project.
    pub project: ProjectId,
    /// The dashboard; none for all dashboards of the project.
    pub dashboard: Option<DashboardId>,
    /// The user to whom the rule applies; none for everyone by default.
    pub user: Option<UserId>,
    /// The level that the rule gives.
    pub level: AccessLevel,
    /// When the rule was created.
    pub created_at: Timestamp,
    /// When the level last changed.
    pub updated_at: Timestamp,
}

/// Rules by the member that they name.
pub const BY_MEMBER: Index<AccessRule, (OrganizationId, UserId)> =
    Index::many(Table::AccessRulesByMember, |rule| Some((rule.organization, rule.user?)));
/// Rules that name no member.
pub const DEFAULTS: Index<AccessRule, ProjectId> =
    Index::many(Table::AccessRulesForAll, |rule| rule.user.is_none().then_some(rule.project));

impl_record!(AccessRule {
    table: AccessRules,
    key: |rule| -> (ProjectId, Option<DashboardId>, Option<UserId>) {
        (rule.project, rule.dashboard, rule.user)
    },
    indexes: [&BY_MEMBER, &DEFAULTS],
    counts: [|rule| Some(rule.project.encoded())],
    owner: |rule, _| Ok(Some(rule.organization.owner())),
    references: |rule| {
        let dashboard = rule.dashboard.map(|id| (rule.project, id).encoded());
        let user = rule.user.map(|id| (rule.organization, id));
        [Reference::to::<Project>(&(rule.organization, rule.project))]
            .into_iter()
            .chain(dashboard.map(|key| Reference { table: Table::Dashboards, key }))
            .chain(user.map(|key| Reference::to::<Membership>(&key)))
            .collect::<Vec<_>>()
    },
});

/// The access rules of a project that apply to one caller. The first that exists decides:
///
/// 1. a rule on the dashboard that names the caller,
/// 2. a rule on all dashboards that names the caller,
/// 3. a rule on all dashboards for everyone,
/// 4. a rule on the dashboard for everyone.
#[derive(Debug, Default)]
pub struct CallerRules {
    /// Rules on single dashboards that name the caller.
    pub named: HashMap<DashboardId, AccessLevel>,
    /// The level on all dashboards, from the second or third kind of rule.
    pub all: Option<AccessLevel>,
    /// Rules on single dashboards for everyone.
    pub by_default: HashMap<DashboardId, AccessLevel>,
}

impl CallerRules {
    /// Reads all rules of the project that apply to the caller.
    pub fn of(tx: &impl Tx, tenant: &InProject) -> Result<Self> {
        let mut ruling = Self::default();
        let project = tenant.project.id;
        if tx.count::<AccessRule>(&project)? == 0 {
            return Ok(ruling);
        }
        let everything = Window::all(Order::Ascending);
        tx.walk(&DEFAULTS, &project, everything, |row| {
            match row.meta.dashboard {
                Some(dashboard) => drop(ruling.by_default.insert(dashboard, row.meta.level)),
                None => ruling.all = Some(row.meta.level),
            }
            Ok(())
        })?;
        let mine = (tenant.member.organization, tenant.member.user, project);
        tx.walk(&BY_MEMBER, &mine, everything, |row| {
            match row.meta.dashboard {
                Some(dashboard) => drop(ruling.named.insert(dashboard, row.meta.level)),
                None => ruling.all = Some(row.meta.level),
            }
            Ok(())
        })?;
        Ok(ruling)
    }

    /// Returns the dashboards that a rule on that dashboard may hide from the caller.
    pub fn restricted_dashboards(&self) -> impl Iterator<Item = DashboardId> {
        let rules = self.named.iter().chain(&self.by_default);
        rules.filter(|(_, level)| !level.can_view()).map(|(id, _)| *id)
    }

    /// Returns whether a rule that names the caller lets them view a dashboard.
    pub fn grants_any(&self) -> bool {
        self.named.values().any(|level| level.can_view())
    }

    /// Returns the level that the rules give on a dashboard; `None` if no rule applies.
    pub fn on(&self, dashboard: DashboardId) -> Option<AccessLevel> {
        let named = self.named.get(&dashboard).copied();
        named.or(self.all).or_else(|| self.by_default.get(&dashboard).copied())
    }
}

/// Returns the level that rules give the caller on one dashboard; `None` if no rule applies.
pub fn level_on(
    tx: &impl Tx,
    tenant: &InProject,
    dashboard: DashboardId,
) -> Result<Option<AccessLevel>> {
    let project = tenant.project.id;
    if tx.count::<AccessRule>(&project)? == 0 {
        return Ok(None);
    }
    let user = Some(tenant.member.user);
    for (dashboard, user) in
        [(Some(dashboard), user), (None, user), (None, None), (Some(dashboard), None)]
    {
        if let Some(rule) = tx.meta::<AccessRule>(&(project, dashboard, user))? {
            return Ok(Some(rule.level));
        }
    }
    Ok(None)
}

/// Returns the level that rules give the caller on all dashboards of the project; `None` if no rule
/// applies.
pub fn level_on_all(tx: &impl Tx, tenant: &InProject) -> Result<Option<AccessLevel>> {
    for user in [Some(tenant.member.user), None] {
        if let Some(rule) = tx.meta::<AccessRule>(&(tenant.project.id, None, user))? {
            return Ok(Some(rule.level));
        }
    }
    Ok(None)
}

/// Returns the level that a rule gives everyone on all dashboards of the project; `None` without such a
/// rule.
pub fn default_of_all(tx: &impl Tx, project: ProjectId) -> Result<Option<AccessLevel>> {
    Ok(tx.meta::<AccessRule>(&(project, None, None))?.map(|rule| rule.level))
}

/// Creates a rule or sets its level. A rule that already has this level does not change.
pub fn set(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: Option<DashboardId>,
    user: Option<UserId>,
    level: AccessLevel,
    now: Timestamp,
) -> Result<AccessRule> {
    let projects::Meta { organization, id: project, .. } = tenant.project;
    let rule = match tx.find::<AccessRule>(&(project, dashboard, user))? {
        Some(rule) if rule.level == level => return Ok(rule),
        Some(rule) => AccessRule { level, updated_at: now, ..rule },
        None => {
            let created_at = now;
            AccessRule {
                organization,
                project,
                dashboard,
                user,
                level,
                created_at,
                updated_at: now,
            }
        }
    };
    tx.put(&rule)?;
    Ok(rule)
}
