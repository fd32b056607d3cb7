//! Access rules on dashboards: what a member, or everyone by default, may do with one of them or with all
//! (facts-dashboards §9, the four-level variant).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::access::InProject;
use crate::access::levels::AccessLevel;
use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId, UserId};
use crate::resources::members::Membership;
use crate::resources::projects::{self, Project};
use crate::store::{
    Count, Index, Indexed, Key, Order, Owner, Record, Reference, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project.
    pub project: ProjectId,
    /// The dashboard; none for all of the project.
    pub dashboard: Option<DashboardId>,
    /// Whom it is about; none for everyone whom no other rule names.
    pub user: Option<UserId>,
    /// What it gives.
    pub level: AccessLevel,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its level last changed.
    pub updated_at: Timestamp,
}

/// The rules about a member.
pub const BY_MEMBER: Index<Rule, (OrganizationId, UserId)> =
    Index::many(Table::AccessRulesByMember, |rule| Some((rule.organization, rule.user?)));
/// The rules for everyone.
pub const FOR_ALL: Index<Rule, ProjectId> =
    Index::many(Table::AccessRulesForAll, |rule| rule.user.is_none().then_some(rule.project));

impl Record for Rule {
    const TABLE: Table = Table::AccessRules;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_MEMBER, &FOR_ALL];
    const COUNTS: &'static [Count<Self>] = &[Count::per(|rule| Some(rule.project.encoded()))];
    type Key = (ProjectId, Option<DashboardId>, Option<UserId>);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        (self.project, self.dashboard, self.user)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        let dashboard = self.dashboard.map(|id| (self.project, id).encoded());
        let user = self.user.map(|id| (self.organization, id));
        [Reference::to::<Project>(&(self.organization, self.project))]
            .into_iter()
            .chain(dashboard.map(|key| Reference { table: Table::Dashboards, key }))
            .chain(user.map(|key| Reference::to::<Membership>(&key)))
            .collect()
    }
}

/// What the rules of a project say of one caller: the one on a dashboard that names them goes before the one
/// on all dashboards (that names them, else for everyone), and that before the dashboard's for everyone.
#[derive(Debug, Default)]
pub struct Ruling {
    /// The caller's own rules on single dashboards.
    pub named: HashMap<DashboardId, AccessLevel>,
    /// What holds for all dashboards.
    pub all: Option<AccessLevel>,
    /// The rules for everyone on single dashboards.
    pub by_default: HashMap<DashboardId, AccessLevel>,
}

impl Ruling {
    /// Everything that the project's rules say of the caller.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn of(tx: &impl Tx, place: &InProject) -> Result<Self> {
        let mut ruling = Self::default();
        let project = place.project.id;
        if tx.count::<Rule>(&project)? == 0 {
            return Ok(ruling);
        }
        let everything = Window::all(Order::Ascending);
        tx.walk(&FOR_ALL, &project, everything, |row| {
            match row.head.dashboard {
                Some(dashboard) => drop(ruling.by_default.insert(dashboard, row.head.level)),
                None => ruling.all = Some(row.head.level),
            }
            Ok(())
        })?;
        let mine = (place.member.organization, place.member.user, project);
        tx.walk(&BY_MEMBER, &mine, everything, |row| {
            match row.head.dashboard {
                Some(dashboard) => drop(ruling.named.insert(dashboard, row.head.level)),
                None => ruling.all = Some(row.head.level),
            }
            Ok(())
        })?;
        Ok(ruling)
    }

    /// The dashboards that a rule of their own may hide from the caller.
    pub fn singled_out(&self) -> impl Iterator<Item = DashboardId> {
        let rules = self.named.iter().chain(&self.by_default);
        rules.filter(|(_, level)| !level.lets_view()).map(|(id, _)| *id)
    }

    /// Whether the caller may see some dashboard by a rule that names both.
    pub fn grants_any(&self) -> bool {
        self.named.values().any(|level| level.lets_view())
    }

    /// What they say of a dashboard, if they say anything.
    pub fn on(&self, dashboard: DashboardId) -> Option<AccessLevel> {
        let named = self.named.get(&dashboard).copied();
        named.or(self.all).or_else(|| self.by_default.get(&dashboard).copied())
    }
}

/// What the rules of the project say of the caller and one dashboard, if they say anything.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn on(tx: &impl Tx, place: &InProject, dashboard: DashboardId) -> Result<Option<AccessLevel>> {
    let project = place.project.id;
    if tx.count::<Rule>(&project)? == 0 {
        return Ok(None);
    }
    let user = Some(place.member.user);
    for (dashboard, user) in
        [(Some(dashboard), user), (None, user), (None, None), (Some(dashboard), None)]
    {
        if let Some(rule) = tx.head::<Rule>(&(project, dashboard, user))? {
            return Ok(Some(rule.level));
        }
    }
    Ok(None)
}

/// What the rules say of the caller and all dashboards of the project, if they say anything.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn on_all(tx: &impl Tx, place: &InProject) -> Result<Option<AccessLevel>> {
    for user in [Some(place.member.user), None] {
        if let Some(rule) = tx.head::<Rule>(&(place.project.id, None, user))? {
            return Ok(Some(rule.level));
        }
    }
    Ok(None)
}

/// What holds by default for all dashboards of the project, if a rule says.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn default_of_all(tx: &impl Tx, project: ProjectId) -> Result<Option<AccessLevel>> {
    Ok(tx.head::<Rule>(&(project, None, None))?.map(|rule| rule.level))
}

/// Puts a rule at this level, whatever it was. One that is there already stays as it is.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn set(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: Option<DashboardId>,
    user: Option<UserId>,
    level: AccessLevel,
    now: Timestamp,
) -> Result<Rule> {
    let projects::Head { organization, id: project, .. } = place.project;
    let rule = match tx.find::<Rule>(&(project, dashboard, user))? {
        Some(rule) if rule.level == level => return Ok(rule),
        Some(rule) => Rule { level, updated_at: now, ..rule },
        None => {
            let created_at = now;
            Rule { organization, project, dashboard, user, level, created_at, updated_at: now }
        }
    };
    tx.put(&rule)?;
    Ok(rule)
}

/// Removes up to `limit` rules about a member who left; returns how many.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn remove_of(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
    limit: usize,
) -> Result<usize> {
    let keys = tx.keys(&BY_MEMBER, &(organization, user), limit)?;
    for key in &keys {
        tx.remove::<Rule>(key)?;
    }
    Ok(keys.len())
}
