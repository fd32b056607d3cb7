//! What decides the access of each member to one dashboard or insight. The order of precedence is that of every request:
//! see [`visible_by`], [`precedence`], [`Meta::rights_given`] and [`levels::on_insight`].

use std::collections::HashMap;

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{DashboardId, UserId};
use crate::resources::access_controls::levels::{self, AccessLevel, MemberRights};
use crate::resources::access_controls::precedence::{self, DecidingRule, Tier};
use crate::resources::access_controls::{rules, runs_project};
use crate::resources::access_objects::{Kind, Object};
use crate::resources::access_subject::Subject;
use crate::resources::members::Membership;
use crate::resources::projects::grants::{self, EffectiveGrant, GrantLevel};
use crate::resources::projects::{self, VisibleBy, visible_by};
use crate::resources::{collaborators, roles};
use crate::store::Tx;

use crate::resources::dashboards::insights::levels::RestrictionOfInsight;
use crate::resources::dashboards::insights::{Insight, Meta as InsightMeta};
use crate::resources::dashboards::{Dashboard, Meta, VisibleDashboards, tiles};

/// The rules on a project and on one of its objects, read once for all members.
pub(super) struct AccessSources<'p> {
    pub(super) project: &'p projects::Meta,
    target: Target,
    /// The level of the grant on the project for each subject.
    pub(super) grants: HashMap<Subject, GrantLevel>,
    /// The level of the rule on the object for each subject.
    on_object: HashMap<Subject, AccessLevel>,
    /// The level of the rule on all objects of the kind for each subject.
    on_kind: HashMap<Subject, AccessLevel>,
    /// Whether a rule names a role.
    names_role: bool,
}

/// The object, and what restricts who may edit it.
enum Target {
    /// With its collaborators; none if every member of the project may edit.
    Dashboard { dashboard: Meta, collaborators: HashMap<UserId, i64> },
    /// With the live dashboards that show it; none if no dashboard of them is restricted.
    Insight { insight: InsightMeta, shown_on: Vec<DashboardId> },
}

/// What one member may do with the object, and what decides it.
pub(super) struct MemberAccess<'m> {
    pub(super) member: &'m Membership,
    /// The roles of the member; none if no rule names a role.
    pub(super) roles: Vec<Subject>,
    /// Why the member sees the project; `None` if the member does not.
    pub(super) visible_by: Option<VisibleBy>,
    /// The access rule that decides, if one applies.
    pub(super) rule: Option<DecidingRule>,
    pub(super) rights: MemberRights,
    /// Whether the member may edit the access rules on the object.
    pub(super) can_edit_access_levels: bool,
}

impl MemberAccess<'_> {
    /// Returns what the member may do with the object.
    pub(super) fn level(&self) -> AccessLevel {
        if self.visible_by.is_some() { self.rights.level() } else { AccessLevel::None }
    }
}

impl Target {
    fn of(tx: &impl Tx, project: &projects::Meta, object: Object) -> Result<Self> {
        match object {
            Object::Dashboard(id) => {
                let dashboard: Option<Meta> = tx.meta::<Dashboard>(&(project.id, id))?;
                let dashboard = dashboard.ok_or_else(Error::not_found)?;
                let collaborators = if dashboard.is_restricted() {
                    collaborators::levels_on(tx, project.id, id)?
                } else {
                    HashMap::new()
                };
                Ok(Self::Dashboard { dashboard, collaborators })
            }
            Object::Insight(id) => {
                let key = (project.id, id);
                let insight = tx.meta::<Insight>(&key)?.ok_or_else(Error::not_found)?;
                let (mut shown_on, mut is_restricted) = (Vec::new(), false);
                for (_, dashboard, _) in tiles::live_tiles(tx, key)? {
                    let found = tx.meta::<Dashboard>(&(project.id, dashboard))?;
                    is_restricted |= found.is_some_and(|meta| meta.is_restricted());
                    shown_on.push(dashboard);
                }
                if !is_restricted {
                    shown_on.clear();
                }
                Ok(Self::Insight { insight, shown_on })
            }
        }
    }

    /// Returns the rights of a member to whom access rules give the level `ruled`, if a rule applies.
    fn rights(
        &self,
        tx: &impl Tx,
        project: &projects::Meta,
        member: &Membership,
        ruled: Option<AccessLevel>,
    ) -> Result<MemberRights> {
        match self {
            Self::Dashboard { dashboard, collaborators } => {
                let collaborator = collaborators.get(&member.user).copied();
                Ok(dashboard.rights_given(member, collaborator, ruled).into())
            }
            Self::Insight { insight, shown_on } => {
                let (restriction, privilege) = restriction(tx, project, member, shown_on)?.levels();
                Ok(levels::on_insight(member, insight.created_by, ruled, restriction, privilege))
            }
        }
    }
}

/// Returns the restriction of an insight that these dashboards show, for a member.
fn restriction(
    tx: &impl Tx,
    project: &projects::Meta,
    member: &Membership,
    shown_on: &[DashboardId],
) -> Result<RestrictionOfInsight> {
    let mut restriction = RestrictionOfInsight::default();
    if shown_on.is_empty() {
        return Ok(restriction);
    }
    let tenant = InProject { member: member.clone(), project: project.clone() };
    let mut dashboards = VisibleDashboards::of(tx, &tenant)?;
    for id in shown_on {
        if let Some(rights) = dashboards.rights(tx, *id)? {
            restriction.add(&rights);
        }
    }
    Ok(restriction)
}

impl<'p> AccessSources<'p> {
    pub(super) fn of(tx: &impl Tx, project: &'p projects::Meta, object: Object) -> Result<Self> {
        let target = Target::of(tx, project, object)?;
        let grants = grants::levels(tx, project)?;
        let on_object = rules::levels(tx, project.id, object.kind(), Some(object.number()))?;
        let on_kind = rules::levels(tx, project.id, object.kind(), None)?;
        let mut named = grants.keys().chain(on_object.keys()).chain(on_kind.keys());
        let names_role = named.any(|subject| subject.role().is_some());
        Ok(Self { project, target, grants, on_object, on_kind, names_role })
    }

    /// Returns the level of the rule of a tier for a subject.
    pub(super) fn rule_level(&self, tier: Tier, subject: Subject) -> Option<AccessLevel> {
        let rules = if tier.on_kind { &self.on_kind } else { &self.on_object };
        rules.get(&subject).copied()
    }

    /// Returns the access of a member of the organization.
    pub(super) fn access<'m>(
        &self,
        tx: &impl Tx,
        member: &'m Membership,
    ) -> Result<MemberAccess<'m>> {
        let Membership { organization, user, .. } = *member;
        let roles: Vec<Subject> = if self.names_role {
            roles::of_user(tx, organization, user)?.into_iter().map(Subject::Role).collect()
        } else {
            Vec::new()
        };
        let named: Vec<Subject> = [Subject::User(user)].into_iter().chain(roles.clone()).collect();
        let grant = || self.effective_grant(&named);
        let rule = precedence::deciding_rule(&precedence::OF_OBJECT, &named, |tier, subject| {
            Ok(self.rule_level(tier, subject))
        })?;
        let rights = self.target.rights(tx, self.project, member, rule.map(|rule| rule.level))?;
        let visible_by = visible_by(member, self.project, grant)?;
        let can_manage = rights.user_access_level.can_manage(runs_project(member, grant)?);
        let can_edit_access_levels = visible_by.is_some() && can_manage;
        Ok(MemberAccess { member, roles, visible_by, rule, rights, can_edit_access_levels })
    }

    fn effective_grant(&self, named: &[Subject]) -> Result<Option<EffectiveGrant>> {
        grants::effective(named.iter().copied(), |subject| Ok(self.grants.get(&subject).copied()))
    }

    /// Returns the kind of the object.
    pub(super) const fn kind(&self) -> Kind {
        match self.target {
            Target::Dashboard { .. } => Kind::Dashboard,
            Target::Insight { .. } => Kind::Insight,
        }
    }

    /// Returns whether a user created the object.
    pub(super) fn is_creator(&self, user: UserId) -> bool {
        let creator = match &self.target {
            Target::Dashboard { dashboard, .. } => dashboard.created_by,
            Target::Insight { insight, .. } => insight.created_by,
        };
        creator == Some(user)
    }

    /// Returns whether a restriction limits who may edit.
    pub(super) fn is_restricted(&self) -> bool {
        match &self.target {
            Target::Dashboard { dashboard, .. } => dashboard.is_restricted(),
            Target::Insight { shown_on, .. } => !shown_on.is_empty(),
        }
    }

    /// Returns whether a member is exempt from the restriction: a collaborator of the dashboard, or a member whom the
    /// restriction of a dashboard with the insight lets edit.
    pub(super) fn is_exempt(&self, access: &MemberAccess<'_>) -> bool {
        match &self.target {
            Target::Dashboard { collaborators, .. } => {
                collaborators.contains_key(&access.member.user)
            }
            Target::Insight { shown_on, .. } => !shown_on.is_empty() && access.rights.can_edit,
        }
    }
}
