//! Access rules on objects, and which of them decides. See `docs/spec/access-controls.md`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId, RoleId, UserId};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_objects::{Kind, Object};
use crate::resources::access_subject::Subject;
use crate::resources::projects::Project;
use crate::store::{Index, Key, Order, Reference, Table, Tx, Window, WriteTx, impl_record};
use crate::time::Timestamp;

/// An access rule on one object of a project, or on all objects of a kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccessRule {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project.
    pub project: ProjectId,
    /// The kind of object.
    pub kind: Kind,
    /// The number of the object; none for all objects of the kind.
    pub object: Option<u64>,
    /// To whom the rule applies.
    pub subject: Subject,
    /// The level that the rule gives.
    pub level: AccessLevel,
    /// When the rule was created.
    pub created_at: Timestamp,
    /// When the level last changed.
    pub updated_at: Timestamp,
}

/// What identifies a rule: the project, the kind, the number of the object (none for all of the kind), and the
/// subject.
pub type RuleKey = (ProjectId, Kind, Option<u64>, Subject);

/// Rules by the member that they name.
pub const BY_MEMBER: Index<AccessRule, (OrganizationId, UserId)> =
    Index::many(Table::AccessRulesByMember, |rule| Some((rule.organization, rule.subject.user()?)));
/// Rules by the role that they name.
pub const BY_ROLE: Index<AccessRule, (OrganizationId, RoleId)> =
    Index::many(Table::AccessRulesByRole, |rule| Some((rule.organization, rule.subject.role()?)));
/// Rules for everyone.
pub const DEFAULTS: Index<AccessRule, (ProjectId, Kind)> =
    Index::many(Table::AccessRulesForAll, |rule| {
        (rule.subject == Subject::Everyone).then_some((rule.project, rule.kind))
    });

impl_record!(AccessRule {
    table: AccessRules,
    key: |rule| -> RuleKey { (rule.project, rule.kind, rule.object, rule.subject) },
    indexes: [&BY_MEMBER, &BY_ROLE, &DEFAULTS],
    counts: [|rule| Some((rule.project, rule.kind).encoded())],
    owner: |rule, _| Ok(Some(rule.organization.owner())),
    references: |rule| {
        [Reference::to::<Project>(&(rule.organization, rule.project))]
            .into_iter()
            .chain(rule.target().map(|object| object.reference(rule.project)))
            .chain(rule.subject.reference(rule.organization))
            .collect::<Vec<_>>()
    },
});

impl AccessRule {
    /// Returns the object that the rule is about; `None` for a rule on all objects of a kind.
    pub fn target(&self) -> Option<Object> {
        Object::of(self.kind, self.object?)
    }
}

/// Returns whether a project has rules on a kind of objects. Without such a rule everyone is an editor, and no
/// other rule needs to be read.
pub fn exist(tx: &impl Tx, project: ProjectId, kind: Kind) -> Result<bool> {
    Ok(tx.count::<AccessRule>(&(project, kind))? > 0)
}

/// The access rules on a kind of objects of a project that apply to one caller. The first that exists decides:
///
/// 1. a rule on the object that names the caller,
/// 2. a rule on the kind that names the caller,
/// 3. the rule on the kind for everyone,
/// 4. the rule on the object for everyone.
#[derive(Debug, Default)]
pub struct CallerRules {
    /// Rules on single objects that name the caller, by the number of the object.
    named: HashMap<u64, AccessLevel>,
    /// The level on all objects, from the second or third kind of rule.
    pub all: Option<AccessLevel>,
    /// Rules on single objects for everyone, by the number of the object.
    by_default: HashMap<u64, AccessLevel>,
}

impl CallerRules {
    /// Reads all rules on objects of this kind in the project that apply to the caller.
    pub fn of(tx: &impl Tx, tenant: &InProject, kind: Kind) -> Result<Self> {
        let mut ruling = Self::default();
        let project = tenant.project.id;
        if !exist(tx, project, kind)? {
            return Ok(ruling);
        }
        let everything = Window::all(Order::Ascending);
        tx.walk(&DEFAULTS, &(project, kind), everything, |row| {
            match row.meta.object {
                Some(number) => drop(ruling.by_default.insert(number, row.meta.level)),
                None => ruling.all = Some(row.meta.level),
            }
            Ok(())
        })?;
        let mine = (tenant.member.organization, tenant.member.user, project, kind);
        tx.walk(&BY_MEMBER, &mine, everything, |row| {
            match row.meta.object {
                Some(number) => drop(ruling.named.insert(number, row.meta.level)),
                None => ruling.all = Some(row.meta.level),
            }
            Ok(())
        })?;
        Ok(ruling)
    }

    /// Returns the numbers of the objects that a rule on that object may hide from the caller.
    pub fn restricted(&self) -> impl Iterator<Item = u64> {
        let rules = self.named.iter().chain(&self.by_default);
        rules.filter(|(_, level)| !level.can_view()).map(|(number, _)| *number)
    }

    /// Returns whether a rule on a single object that names the caller lets them view it.
    pub fn grants_any(&self) -> bool {
        self.named.values().any(|level| level.can_view())
    }

    /// Returns the level that the rules give on the object with this number; `None` if no rule applies.
    pub fn on(&self, number: u64) -> Option<AccessLevel> {
        let named = self.named.get(&number).copied();
        named.or(self.all).or_else(|| self.by_default.get(&number).copied())
    }
}

/// Returns the level that rules give the caller on one object; `None` if no rule applies.
pub fn level_on(tx: &impl Tx, tenant: &InProject, object: Object) -> Result<Option<AccessLevel>> {
    let (project, kind) = (tenant.project.id, object.kind());
    if !exist(tx, project, kind)? {
        return Ok(None);
    }
    let (one, me) = (Some(object.number()), Subject::User(tenant.member.user));
    for (number, subject) in
        [(one, me), (None, me), (None, Subject::Everyone), (one, Subject::Everyone)]
    {
        if let Some(rule) = tx.meta::<AccessRule>(&(project, kind, number, subject))? {
            return Ok(Some(rule.level));
        }
    }
    Ok(None)
}

/// Returns the level that rules give the caller on all objects of a kind in the project; `None` if no rule
/// applies.
pub fn level_on_all(tx: &impl Tx, tenant: &InProject, kind: Kind) -> Result<Option<AccessLevel>> {
    for subject in [Subject::User(tenant.member.user), Subject::Everyone] {
        if let Some(rule) = tx.meta::<AccessRule>(&(tenant.project.id, kind, None, subject))? {
            return Ok(Some(rule.level));
        }
    }
    Ok(None)
}

/// Returns the level that a rule gives everyone on all objects of a kind in the project; `None` without such a
/// rule.
pub fn default_of_all(tx: &impl Tx, project: ProjectId, kind: Kind) -> Result<Option<AccessLevel>> {
    let rule = tx.meta::<AccessRule>(&(project, kind, None, Subject::Everyone))?;
    Ok(rule.map(|rule| rule.level))
}

/// Creates a rule or sets its level. A rule that already has this level does not change.
pub fn set(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    key: RuleKey,
    level: AccessLevel,
    now: Timestamp,
) -> Result<AccessRule> {
    let (project, kind, object, subject) = key;
    let (created_at, updated_at) = (now, now);
    let rule = match tx.find::<AccessRule>(&key)? {
        Some(rule) if rule.level == level => return Ok(rule),
        Some(rule) => AccessRule { level, updated_at, ..rule },
        None => AccessRule {
            organization,
            project,
            kind,
            object,
            subject,
            level,
            created_at,
            updated_at,
        },
    };
    tx.put(&rule)?;
    Ok(rule)
}
