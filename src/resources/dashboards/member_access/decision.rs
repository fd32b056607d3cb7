//! What decides the access of each member to one dashboard. The order of precedence is that of every request: see
//! [`visible_by`], [`precedence`] and [`Meta::rights_given`].

use std::collections::HashMap;

use crate::error::Result;
use crate::ids::UserId;
use crate::resources::access_controls::levels::{AccessLevel, DashboardRights};
use crate::resources::access_controls::precedence::{self, DecidingRule, Tier};
use crate::resources::access_controls::{rules, runs_project};
use crate::resources::access_objects::Kind;
use crate::resources::access_subject::Subject;
use crate::resources::members::Membership;
use crate::resources::projects::grants::{self, EffectiveGrant, GrantLevel};
use crate::resources::projects::{self, VisibleBy, visible_by};
use crate::resources::{collaborators, roles};
use crate::store::Tx;

use crate::resources::dashboards::Meta;

/// The rules on a project and on one of its dashboards, read once for all members.
pub(super) struct AccessSources<'p> {
    pub(super) project: &'p projects::Meta,
    pub(super) dashboard: Meta,
    /// The level of the grant on the project for each subject.
    pub(super) grants: HashMap<Subject, GrantLevel>,
    /// The level of the rule on the dashboard for each subject.
    on_dashboard: HashMap<Subject, AccessLevel>,
    /// The level of the rule on all dashboards for each subject.
    on_kind: HashMap<Subject, AccessLevel>,
    /// The collaborators of the dashboard; none if every member of the project may edit.
    collaborators: HashMap<UserId, i64>,
    /// Whether a rule names a role.
    names_role: bool,
}

/// What one member may do with the dashboard, and what decides it.
pub(super) struct MemberAccess<'m> {
    pub(super) member: &'m Membership,
    /// The roles of the member; none if no rule names a role.
    pub(super) roles: Vec<Subject>,
    /// Why the member sees the project; `None` if the member does not.
    pub(super) visible_by: Option<VisibleBy>,
    /// The access rule that decides, if one applies.
    pub(super) rule: Option<DecidingRule>,
    pub(super) rights: DashboardRights,
    /// Whether the member may edit the access rules on the dashboard.
    pub(super) can_edit_access_levels: bool,
}

impl MemberAccess<'_> {
    /// Returns what the member may do with the dashboard.
    pub(super) fn level(&self) -> AccessLevel {
        if self.visible_by.is_some() { self.rights.level() } else { AccessLevel::None }
    }
}

impl<'p> AccessSources<'p> {
    pub(super) fn of(tx: &impl Tx, project: &'p projects::Meta, dashboard: Meta) -> Result<Self> {
        let grants = grants::levels(tx, project)?;
        let on_dashboard = rules::levels(tx, project.id, Kind::Dashboard, Some(dashboard.id.0))?;
        let on_kind = rules::levels(tx, project.id, Kind::Dashboard, None)?;
        let collaborators = if dashboard.is_restricted() {
            collaborators::levels_on(tx, project.id, dashboard.id)?
        } else {
            HashMap::new()
        };
        let mut named = grants.keys().chain(on_dashboard.keys()).chain(on_kind.keys());
        let names_role = named.any(|subject| subject.role().is_some());
        Ok(Self { project, dashboard, grants, on_dashboard, on_kind, collaborators, names_role })
    }

    /// Returns the level of the rule of a tier for a subject.
    pub(super) fn rule_level(&self, tier: Tier, subject: Subject) -> Option<AccessLevel> {
        let rules = if tier.on_kind { &self.on_kind } else { &self.on_dashboard };
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
        let collaborator = self.collaborators.get(&user).copied();
        let rights = self.dashboard.rights_given(member, collaborator, rule.map(|rule| rule.level));
        let visible_by = visible_by(member, self.project, grant)?;
        let can_manage = rights.user_access_level.can_manage(runs_project(member, grant)?);
        let can_edit_access_levels = visible_by.is_some() && can_manage;
        Ok(MemberAccess { member, roles, visible_by, rule, rights, can_edit_access_levels })
    }

    fn effective_grant(&self, named: &[Subject]) -> Result<Option<EffectiveGrant>> {
        grants::effective(named.iter().copied(), |subject| Ok(self.grants.get(&subject).copied()))
    }

    /// Returns whether a user is a collaborator of the dashboard while it is restricted.
    pub(super) fn is_collaborator(&self, user: UserId) -> bool {
        self.collaborators.contains_key(&user)
    }
}
