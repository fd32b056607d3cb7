//! The rules that can decide a member's access to an object, in the order of precedence, with the one that does.

use crate::error::Result;
use crate::resources::access_controls::levels::{AccessLevel, DecidedBy};
use crate::resources::access_controls::precedence::{OF_OBJECT, Tier};
use crate::resources::access_objects::Kind;
use crate::resources::access_subject::{Subject, highest};
use crate::resources::projects::grants::GrantLevel;

use super::body::{Reason, ReasonRule, ReasonSubject};
use super::decision::{AccessSources, MemberAccess};

/// The number of rules that can decide.
const RULES: usize = 15;

/// Returns all rules that can decide, in the order of precedence.
pub(super) fn reasons(
    sources: &AccessSources<'_>,
    access: &MemberAccess<'_>,
) -> Result<Vec<Reason>> {
    let mut chain = Chain { sources, access, reached: true, reasons: Vec::with_capacity(RULES) };
    chain.organization();
    chain.project()?;
    let is_open = chain.creator();
    chain.access_rules()?;
    chain.restriction(is_open);
    Ok(chain.reasons)
}

/// The rules while they are collected.
struct Chain<'c> {
    sources: &'c AccessSources<'c>,
    access: &'c MemberAccess<'c>,
    /// Whether the next rule is considered, because the rules before it leave the access open.
    reached: bool,
    reasons: Vec<Reason>,
}

impl Chain<'_> {
    fn organization(&mut self) {
        self.push(ReasonRule::OrganizationMember, "The user is a member of the organization.");
        let is_admin = self.is_decided_by(DecidedBy::Admin);
        let kind = self.kind();
        let text = if is_admin {
            format!("The member is an admin or owner of the organization. They manage all {kind}s.")
        } else {
            "The member is not an admin or owner of the organization.".to_owned()
        };
        let reason = self.push(ReasonRule::OrganizationAdmin, text);
        reason.access_level = is_admin.then_some(AccessLevel::Manager);
        reason.decided = is_admin;
        self.reached = !is_admin;
    }

    fn project(&mut self) -> Result<()> {
        let is_private = self.sources.project.access_control;
        let is_hidden = self.access.visible_by.is_none();
        let text = if is_private {
            "The project is private: only rules on the project open it to members."
        } else {
            "The project is open to all members of the organization."
        };
        let level = self.sources.grants.get(&Subject::Everyone).copied();
        let reason = self.push(ReasonRule::ProjectDefault, text);
        reason.subject = Some(ReasonSubject::Everyone);
        reason.project_level = level.or(Some(GrantLevel::Member));
        reason.access_level = is_private.then_some(AccessLevel::None);
        reason.decided = is_hidden;
        let is_visible = self.reached && !is_hidden;
        self.reached &= is_private;
        for (whom, subjects) in self.subjects(false) {
            let grant = highest(subjects, |subject| Ok(self.sources.grants.get(&subject).copied()));
            let (level, subject) = grant?.unzip();
            let text = rule_text("the project", whom, level.map(GrantLevel::as_str));
            let reason = self.push(ReasonRule::ProjectRule, text);
            (reason.subject, reason.role) = (Some(whom), subject.and_then(Subject::role));
            reason.project_level = level;
        }
        self.reached = is_visible;
        Ok(())
    }

    /// Adds the creator, who has a level without access rules. Returns whether a restriction is considered: only the
    /// creator of a dashboard is exempt from it.
    fn creator(&mut self) -> bool {
        let is_creator = self.sources.is_creator(self.access.member.user);
        let kind = self.kind();
        let text = if is_creator {
            format!("The member created the {kind}. Creators manage their {kind}s.")
        } else {
            format!("The member did not create the {kind}.")
        };
        let decided = self.is_decided_by(DecidedBy::Creator);
        let reason = self.push(ReasonRule::Creator, text);
        reason.access_level = is_creator.then_some(AccessLevel::Manager);
        reason.decided = decided;
        let is_open = self.reached && !decided;
        self.reached &= !is_creator;
        is_open
    }

    /// Adds the access rules. The rules after the one that gives the level are not considered.
    fn access_rules(&mut self) -> Result<()> {
        for tier in OF_OBJECT {
            self.tier(tier)?;
            self.reached &= self.access.rule.is_none_or(|rule| rule.tier != tier);
        }
        let decided = self.is_decided_by(DecidedBy::NoRule);
        let text = "Without an access rule, everyone is an editor.";
        let reason = self.push(ReasonRule::NoRule, text);
        reason.access_level = Some(AccessLevel::Editor);
        reason.decided = decided;
        Ok(())
    }

    fn tier(&mut self, tier: Tier) -> Result<()> {
        let kind = self.kind();
        let (rule, place) = if tier.on_kind {
            (ReasonRule::KindRule, format!("all {kind}s"))
        } else {
            (ReasonRule::ObjectRule, format!("this {kind}"))
        };
        let deciding = self.access.rule.filter(|rule| rule.tier == tier);
        let deciding = deciding.filter(|_| self.is_decided_by(DecidedBy::Rule));
        for (whom, subjects) in self.subjects(tier.for_everyone) {
            let found = highest(subjects, |subject| Ok(self.sources.rule_level(tier, subject)))?;
            let (level, subject) = found.unzip();
            let decided = deciding.is_some_and(|rule| Some(rule.subject) == subject);
            let text = rule_text(&place, whom, level.map(AccessLevel::as_str));
            let reason = self.push(rule, text);
            (reason.subject, reason.role) = (Some(whom), subject.and_then(Subject::role));
            reason.access_level = level;
            reason.decided = decided;
        }
        Ok(())
    }

    /// Adds the restriction, which is considered for a member who may edit without it, and what exempts from it.
    fn restriction(&mut self, is_open: bool) {
        let is_restricted = self.sources.is_restricted();
        let is_exempt = self.sources.is_exempt(self.access);
        let (exemption, [restriction, exempt]) = match self.sources.kind() {
            Kind::Insight => (ReasonRule::DashboardEditor, of_insight(is_restricted, is_exempt)),
            _ => (ReasonRule::Collaborator, of_dashboard(is_restricted, is_exempt)),
        };
        let decided = self.is_decided_by(DecidedBy::Restriction);
        let level = self.access.rights.user_access_level;
        self.reached = is_open && level >= AccessLevel::Editor;
        let reason = self.push(ReasonRule::Restriction, restriction);
        reason.access_level = is_restricted.then_some(AccessLevel::Viewer);
        reason.decided = decided;
        let decided = self.is_decided_by(DecidedBy::Collaborator);
        self.reached &= is_restricted;
        let reason = self.push(exemption, exempt);
        reason.access_level = is_exempt.then_some(level);
        reason.decided = decided;
    }

    /// Returns the word for the object.
    fn kind(&self) -> &'static str {
        self.sources.kind().as_str()
    }

    /// Returns whether this decides what a member who sees the project may do.
    fn is_decided_by(&self, by: DecidedBy) -> bool {
        self.access.visible_by.is_some() && self.access.rights.decided_by == by
    }

    /// Returns the subjects of rules for everyone, or those of rules that name the member and a role of the member.
    fn subjects(&self, for_everyone: bool) -> Vec<(ReasonSubject, Vec<Subject>)> {
        if for_everyone {
            return vec![(ReasonSubject::Everyone, vec![Subject::Everyone])];
        }
        let member = vec![Subject::User(self.access.member.user)];
        vec![(ReasonSubject::Member, member), (ReasonSubject::Role, self.access.roles.clone())]
    }

    fn push(&mut self, rule: ReasonRule, text: impl Into<String>) -> &mut Reason {
        let reason = Reason {
            rule,
            subject: None,
            role: None,
            role_name: None,
            access_level: None,
            project_level: None,
            reached: self.reached,
            decided: false,
            text: text.into(),
        };
        self.reasons.push_mut(reason)
    }
}

/// Returns what the restriction of a dashboard says, and what exempts from it.
const fn of_dashboard(is_restricted: bool, is_collaborator: bool) -> [&'static str; 2] {
    match (is_restricted, is_collaborator) {
        (false, _) => [
            "Editing is not restricted to collaborators.",
            "Without a restriction, there are no collaborators.",
        ],
        (true, true) => [
            "Only collaborators, the creator and admins may edit the dashboard.",
            "The member is a collaborator of the dashboard.",
        ],
        (true, false) => [
            "Only collaborators, the creator and admins may edit the dashboard.",
            "The member is not a collaborator of the dashboard.",
        ],
    }
}

/// Returns what the restrictions of the dashboards with an insight say, and what exempts from them.
const fn of_insight(is_restricted: bool, is_exempt: bool) -> [&'static str; 2] {
    match (is_restricted, is_exempt) {
        (false, _) => [
            "No restricted dashboard shows the insight.",
            "Without a restriction, rights on dashboards do not count.",
        ],
        (true, true) => [
            "A restricted dashboard shows the insight. Only members who may edit a dashboard that shows it may edit it.",
            "The restriction of a dashboard that shows the insight lets the member edit.",
        ],
        (true, false) => [
            "A restricted dashboard shows the insight. Only members who may edit a dashboard that shows it may edit it.",
            "No dashboard that shows the insight lets the member edit.",
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
