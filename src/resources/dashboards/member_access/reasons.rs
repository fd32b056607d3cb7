//! The rules that can decide a member's access to an object, in the order of precedence, with the one that did.

use crate::resources::access_controls::levels::{AccessLevel, DecidedBy};
use crate::resources::access_controls::rules::{self, DecidingRule, OF_OBJECT, Tier};
use crate::resources::members::Membership;
use crate::resources::projects::grants::{self, GrantLevel};
use crate::resources::roles;
use crate::resources::shared::access_subject::{Subject, highest};
use crate::resources::shared::prelude::*;

use super::MemberAccess;
use super::{Reason, ReasonRule, ReasonSubject};

/// Subjects of rules of equal precedence, of which the highest counts.
type Subjects = (ReasonSubject, Vec<Subject>);

/// Returns all rules that can decide, in the order of precedence.
pub(super) fn reasons(tx: &dyn Raw, access: &MemberAccess) -> Result<Vec<Reason>> {
    let Membership { organization, user, .. } = access.tenant.member;
    let roles = roles::of_user(tx, organization, user)?.into_iter().map(Subject::Role).collect();
    let member = vec![Subject::User(user)];
    let named = [(ReasonSubject::Member, member), (ReasonSubject::Role, roles)];
    let everyone = [(ReasonSubject::Everyone, vec![Subject::Everyone])];
    let mut chain = Chain { access, decided: decided(access), reached: true, reasons: Vec::new() };
    chain.organization();
    chain.project(tx, &named)?;
    chain.creator();
    for tier in OF_OBJECT {
        let whom: &[Subjects] = if tier.for_everyone { &everyone } else { &named };
        chain.tier(tx, tier, whom)?;
    }
    let text = "Without an access rule, everyone is an editor.";
    chain.push(ReasonRule::NoRule, Some(AccessLevel::Editor), text);
    chain.restriction();
    Ok(chain.reasons)
}

/// Returns the rule that decided. A rule on the object or its kind is the one of [`MemberAccess::rule`].
fn decided(access: &MemberAccess) -> ReasonRule {
    match access.rights.decided_by {
        _ if !access.is_visible => ReasonRule::ProjectDefault,
        DecidedBy::Admin => ReasonRule::OrganizationAdmin,
        DecidedBy::Creator => ReasonRule::Creator,
        DecidedBy::Rule if access.rule.is_some_and(|rule| rule.tier.on_kind) => {
            ReasonRule::KindRule
        }
        DecidedBy::Rule => ReasonRule::ObjectRule,
        DecidedBy::NoRule => ReasonRule::NoRule,
        DecidedBy::Restriction => ReasonRule::Restriction,
        DecidedBy::Collaborator => exemption(access.object),
    }
}

/// Returns the rule that exempts from a restriction.
const fn exemption(object: Object) -> ReasonRule {
    match object {
        Object::Dashboard(_) => ReasonRule::Collaborator,
        Object::Insight(_) => ReasonRule::DashboardEditor,
    }
}

/// The rules while they are collected.
struct Chain<'c> {
    access: &'c MemberAccess,
    decided: ReasonRule,
    /// Whether the decision considers the next rule: no rule before it decides.
    reached: bool,
    reasons: Vec<Reason>,
}

impl Chain<'_> {
    fn organization(&mut self) {
        let is_admin = self.decided == ReasonRule::OrganizationAdmin;
        let level = is_admin.then_some(AccessLevel::Manager);
        let kind = self.access.object.kind().as_str();
        let text = if is_admin {
            format!("The member is an admin or owner of the organization. They manage all {kind}s.")
        } else {
            "The member is not an admin or owner of the organization.".to_owned()
        };
        let member = "The user is a member of the organization.";
        self.push(ReasonRule::OrganizationMember, None, member);
        self.push(ReasonRule::OrganizationAdmin, level, text);
        self.reached = !is_admin;
    }

    fn project(&mut self, tx: &dyn Raw, named: &[Subjects]) -> Result<()> {
        let access = self.access;
        let project = &access.tenant.project;
        let text = if project.access_control {
            "The project is private: only rules on the project open it to members."
        } else {
            "The project is open to all members of the organization."
        };
        let level = project.access_control.then_some(AccessLevel::None);
        let reason = self.push(ReasonRule::ProjectDefault, level, text);
        reason.subject = Some(ReasonSubject::Everyone);
        reason.project_level = Some(grants::default_level(tx, project)?);
        let reached = self.reached && access.is_visible;
        self.reached &= project.access_control;
        for (whom, subjects) in named {
            let level_of = |subject| grants::level_for(tx, project, subject);
            let (level, subject) = highest(subjects.iter().copied(), level_of)?.unzip();
            let text = rule_text("the project", *whom, level.map(GrantLevel::as_str));
            let reason = self.push_rule(ReasonRule::ProjectRule, *whom, subject, text);
            reason.project_level = level;
        }
        self.reached = reached;
        Ok(())
    }

    fn creator(&mut self) {
        let is_creator = self.access.is_creator;
        let kind = self.access.object.kind().as_str();
        let text = if is_creator {
            format!("The member created the {kind}. Creators manage their {kind}s.")
        } else {
            format!("The member did not create the {kind}.")
        };
        self.push(ReasonRule::Creator, is_creator.then_some(AccessLevel::Manager), text);
        self.reached &= !is_creator;
    }

    /// Adds the rules of a tier. The tiers after the one that gives the level are not considered.
    fn tier(&mut self, tx: &dyn Raw, tier: Tier, whom: &[Subjects]) -> Result<()> {
        let MemberAccess { tenant, object, rule: deciding, .. } = self.access;
        let (project, kind) = (tenant.project.id, object.kind());
        let (rule, place, number) = if tier.on_kind {
            (ReasonRule::KindRule, format!("all {}s", kind.as_str()), None)
        } else {
            (ReasonRule::ObjectRule, format!("this {}", kind.as_str()), Some(object.number()))
        };
        for (whom, subjects) in whom {
            let level_of = |subject| rules::level_for(tx, &(project, kind, number, subject));
            let found = highest(subjects.iter().copied(), level_of)?;
            let found = found.map(|(level, subject)| DecidingRule { tier, subject, level });
            let level = found.map(|rule| rule.level);
            let text = rule_text(&place, *whom, level.map(AccessLevel::as_str));
            let reason = self.push_rule(rule, *whom, found.map(|rule| rule.subject), text);
            reason.access_level = level;
            reason.decided &= found == *deciding;
        }
        self.reached &= deciding.is_none_or(|rule| rule.tier != tier);
        Ok(())
    }

    /// Adds the restriction, and what exempts from it.
    fn restriction(&mut self) {
        let MemberAccess { object, is_visible, rights, is_exempt, .. } = *self.access;
        let [restriction, exempt] = restriction_texts(self.access);
        self.reached = is_visible && rights.restriction_counts();
        let level = rights.is_restricted().then_some(AccessLevel::Viewer);
        self.push(ReasonRule::Restriction, level, restriction);
        self.reached &= rights.is_restricted();
        let level = is_exempt.then_some(rights.user_access_level);
        self.push(exemption(object), level, exempt);
    }

    fn push_rule(
        &mut self,
        rule: ReasonRule,
        whom: ReasonSubject,
        subject: Option<Subject>,
        text: String,
    ) -> &mut Reason {
        let reason = self.push(rule, None, text);
        reason.subject = Some(whom);
        reason.role = subject.and_then(Subject::role);
        reason
    }

    fn push(
        &mut self,
        rule: ReasonRule,
        access_level: Option<AccessLevel>,
        text: impl Into<String>,
    ) -> &mut Reason {
        let reason = Reason {
            rule,
            subject: None,
            role: None,
            role_name: None,
            access_level,
            project_level: None,
            reached: self.reached,
            decided: rule == self.decided,
            text: text.into(),
        };
        self.reasons.push_mut(reason)
    }
}

/// Returns what the restriction says, and what exempts from it.
fn restriction_texts(access: &MemberAccess) -> [&'static str; 2] {
    match (access.object, access.rights.is_restricted(), access.is_exempt) {
        (Object::Dashboard(_), false, _) => [
            "Editing is not restricted to collaborators.",
            "Without a restriction, there are no collaborators.",
        ],
        (Object::Dashboard(_), true, is_collaborator) => [
            "Only collaborators, the creator and admins may edit the dashboard.",
            if is_collaborator {
                "The member is a collaborator of the dashboard."
            } else {
                "The member is not a collaborator of the dashboard."
            },
        ],
        (Object::Insight(_), false, _) => [
            "No restricted dashboard shows the insight.",
            "Without a restriction, rights on dashboards do not count.",
        ],
        (Object::Insight(_), true, is_exempt) => [
            "A restricted dashboard shows the insight. Only members who may edit a dashboard that shows it may edit it.",
            if is_exempt {
                "The restriction of a dashboard that shows the insight lets the member edit."
            } else {
                "No dashboard that shows the insight lets the member edit."
            },
        ],
    }
}

/// Returns what a rule on `place` says about the member, in words. `level` is what the rule gives, if it exists.
fn rule_text(place: &str, whom: ReasonSubject, level: Option<&str>) -> String {
    let whom = match whom {
        ReasonSubject::Member => "the member",
        ReasonSubject::Role => "a role of the member",
        ReasonSubject::Everyone => "everyone",
    };
    match level {
        Some(level) => format!("A rule on {place} gives {whom} the level {level}."),
        None => format!("No rule on {place} is for {whom}."),
    }
}
