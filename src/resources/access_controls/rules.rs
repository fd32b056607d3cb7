//! Access rules on objects, and which of them decides. Limits on their number bound the responses that list them. See
//! `docs/spec/access-controls.md`.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::auth::InProject;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::members::Membership;
use crate::resources::projects::Project;
use crate::resources::roles;
use crate::resources::shared::access_subject::{Subject, highest};
use crate::resources::shared::prelude::*;

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
    // All rules on a kind of objects, and those that name a role.
    counts: [
        |rule| Some((rule.project, rule.kind).encoded()),
        |rule| rule.subject.role().map(|_| (rule.project, rule.kind, true).encoded()),
    ],
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

/// Rules of equal precedence: those on one object or on all objects of its kind, for everyone or for subjects by name.
/// The highest of them counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// Whether the rules are on all objects of the kind.
    pub on_kind: bool,
    /// Whether the rule is for everyone, and not for the member or a role of the member.
    pub for_everyone: bool,
}

/// The tiers of rules on an object. The first that has a rule decides.
pub const OF_OBJECT: [Tier; 4] = [
    Tier { on_kind: false, for_everyone: false },
    Tier { on_kind: true, for_everyone: false },
    Tier { on_kind: true, for_everyone: true },
    Tier { on_kind: false, for_everyone: true },
];

/// The tiers of rules on all objects of a kind. The first that has a rule decides.
pub const OF_KIND: [Tier; 2] = [OF_OBJECT[1], OF_OBJECT[2]];

/// The rule that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecidingRule {
    /// The tier of the rule.
    pub tier: Tier,
    /// Whom the rule names.
    pub subject: Subject,
    /// The level that the rule gives.
    pub level: AccessLevel,
}

/// Returns whether a project has rules on a kind of objects. Without such a rule everyone is an editor, and no
/// other rule needs to be read.
pub fn exist(tx: &dyn Raw, project: ProjectId, kind: Kind) -> Result<bool> {
    Ok(tx.count::<AccessRule>(&(project, kind))? > 0)
}

/// Returns the subjects of rules on a kind of objects that name the caller: the user and the user's roles. Reads the
/// roles only if such a rule names one.
fn named_subjects(tx: &dyn Raw, tenant: &InProject, kind: Kind) -> Result<Vec<Subject>> {
    let Membership { organization, user, .. } = tenant.member;
    let mut subjects = vec![Subject::User(user)];
    if tx.count::<AccessRule>(&(tenant.project.id, kind, true))? > 0 {
        let roles = roles::of_user(tx, organization, user)?;
        subjects.extend(roles.into_iter().map(Subject::Role));
    }
    Ok(subjects)
}

/// The access rules on a kind of objects of a project that apply to one caller. As in [`OF_OBJECT`], the
/// first that exists decides:
///
/// 1. the highest of the rules on the object that name the caller or a role of the caller,
/// 2. the highest of the rules on the kind that name the caller or a role of the caller,
/// 3. the rule on the kind for everyone,
/// 4. the rule on the object for everyone.
#[derive(Debug, Default)]
pub struct CallerRules {
    /// The rules that name the caller or a role of the caller.
    named: RuleLevels,
    /// The rules for everyone.
    by_default: RuleLevels,
}

/// The highest levels that rules on a kind of objects give.
#[derive(Debug, Default)]
struct RuleLevels {
    /// The level on all objects.
    all: Option<AccessLevel>,
    /// The levels on single objects, by their number.
    single: HashMap<u64, AccessLevel>,
}

impl RuleLevels {
    fn add(&mut self, rule: &AccessRule) {
        match rule.object {
            Some(number) => {
                let highest = self.single.entry(number).or_insert(rule.level);
                *highest = rule.level.max(*highest);
            }
            None => self.all = self.all.max(Some(rule.level)),
        }
    }
}

impl CallerRules {
    /// Reads all rules on objects of this kind in the project that apply to the caller.
    pub fn of(tx: &dyn Raw, tenant: &InProject, kind: Kind) -> Result<Self> {
        let (organization, project) = (tenant.member.organization, tenant.project.id);
        let mut found = Self::default();
        if !exist(tx, project, kind)? {
            return Ok(found);
        }
        let rows = Window::all(Order::Ascending);
        let mut add = |row: Row<'_, AccessRule>| {
            found.named.add(&row.meta);
            Ok(())
        };
        for subject in named_subjects(tx, tenant, kind)? {
            match subject {
                Subject::User(user) => {
                    tx.walk(&BY_MEMBER, &(organization, user, project, kind), rows, &mut add)?;
                }
                Subject::Role(role) => {
                    tx.walk(&BY_ROLE, &(organization, role, project, kind), rows, &mut add)?;
                }
                Subject::Everyone => {}
            }
        }
        tx.walk(&DEFAULTS, &(project, kind), rows, |row| {
            found.by_default.add(&row.meta);
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the level that the rules on all objects give; `None` if no such rule applies.
    pub fn on_all(&self) -> Option<AccessLevel> {
        self.named.all.or(self.by_default.all)
    }

    /// Returns the numbers of the objects that a rule on that object may hide from the caller.
    pub fn restricted(&self) -> impl Iterator<Item = u64> {
        let rules = self.named.single.iter().chain(&self.by_default.single);
        rules.filter(|(_, level)| !level.can_view()).map(|(number, _)| *number)
    }

    /// Returns whether rules on a single object that name the caller let them view it.
    pub fn grants_any(&self) -> bool {
        self.named.single.values().any(|level| level.can_view())
    }

    /// Returns the level that the rules give on the object with this number; `None` if no rule applies.
    pub fn on(&self, number: u64) -> Option<AccessLevel> {
        let on = |rules: &RuleLevels| rules.single.get(&number).copied();
        on(&self.named).or_else(|| self.on_all()).or_else(|| on(&self.by_default))
    }
}

/// Returns the rule that gives the caller a level on one object; `None` if no rule applies.
pub fn find_deciding(
    tx: &dyn Raw,
    tenant: &InProject,
    object: Object,
) -> Result<Option<DecidingRule>> {
    decide(tx, tenant, object.kind(), Some(object.number()), &OF_OBJECT)
}

/// Returns the level that rules give the caller on one object; `None` if no rule applies.
pub fn level_on(tx: &dyn Raw, tenant: &InProject, object: Object) -> Result<Option<AccessLevel>> {
    Ok(find_deciding(tx, tenant, object)?.map(|rule| rule.level))
}

/// Returns the level that rules give the caller on all objects of a kind in the project; `None` if no rule
/// applies.
pub fn level_on_all(tx: &dyn Raw, tenant: &InProject, kind: Kind) -> Result<Option<AccessLevel>> {
    let rule = decide(tx, tenant, kind, None, &OF_KIND)?;
    Ok(rule.map(|rule| rule.level))
}

fn decide(
    tx: &dyn Raw,
    tenant: &InProject,
    kind: Kind,
    number: Option<u64>,
    tiers: &[Tier],
) -> Result<Option<DecidingRule>> {
    let project = tenant.project.id;
    if !exist(tx, project, kind)? {
        return Ok(None);
    }
    let named = named_subjects(tx, tenant, kind)?;
    for &tier in tiers {
        let subjects: &[Subject] = if tier.for_everyone { &[Subject::Everyone] } else { &named };
        let number = if tier.on_kind { None } else { number };
        let level_of = |subject| level_for(tx, &(project, kind, number, subject));
        if let Some((level, subject)) = highest(subjects.iter().copied(), level_of)? {
            return Ok(Some(DecidingRule { tier, subject, level }));
        }
    }
    Ok(None)
}

/// Returns the level that the rule with this key gives, if it exists.
pub fn level_for(tx: &dyn Raw, key: &RuleKey) -> Result<Option<AccessLevel>> {
    Ok(tx.meta::<AccessRule>(key)?.map(|rule| rule.level))
}

/// Creates a rule or sets its level. A rule that already has this level does not change.
///
/// # Errors
/// 400 if there is no such rule yet, and the rules of the project reached a limit.
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
        None => {
            require_room(tx, &key)?;
            AccessRule {
                organization,
                project,
                kind,
                object,
                subject,
                level,
                created_at,
                updated_at,
            }
        }
    };
    tx.put(&rule)?;
    Ok(rule)
}

/// The maximum number of objects of a kind in a project that have rules of their own.
const MAX_OBJECTS: u64 = 1_000;
/// The maximum number of rules on one object.
const MAX_ON_OBJECT: usize = 1_000;
/// The maximum number of rules of a project on all objects of a kind, over all kinds.
const MAX_ON_KINDS: usize = 5_000;

/// The objects of a kind in a project.
type OfKind = (ProjectId, Kind);

/// Checks that a project may have another rule, which has this key.
///
/// # Errors
/// 400 if its rules reached a limit.
fn require_room(tx: &dyn Raw, key: &RuleKey) -> Result<()> {
    let (project, kind, object, _) = *key;
    let (of, word) = ((project, kind), kind.as_str());
    let reached = match object {
        None if !has_room_on_kinds(tx, project)? => {
            format!("{MAX_ON_KINDS} access controls on all objects of a kind in one project")
        }
        Some(_) if count(tx, of, object, MAX_ON_OBJECT)? == MAX_ON_OBJECT => {
            format!("{MAX_ON_OBJECT} access controls on one {word}")
        }
        Some(number) if !has_room_for_object(tx, of, number)? => {
            format!("{MAX_OBJECTS} {word}s with access control overrides")
        }
        None | Some(_) => return Ok(()),
    };
    Err(Error::limit_reached(format!("Reached the limit of {reached}.")))
}

fn has_room_on_kinds(tx: &dyn Raw, project: ProjectId) -> Result<bool> {
    let mut left = MAX_ON_KINDS;
    for kind in Kind::ALL {
        left -= count(tx, (project, kind), None, left)?;
    }
    Ok(left > 0)
}

/// Counts the rules on one object, or on all objects of a kind, up to `limit`.
fn count(tx: &dyn Raw, of: OfKind, object: Option<u64>, limit: usize) -> Result<usize> {
    let mut count = 0;
    let window = Window { offset: 0, limit, order: Order::Ascending };
    tx.scan::<AccessRule, _>(&(of.0, of.1, object), window, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Returns whether an object may have rules of its own: it has some, or fewer than [`MAX_OBJECTS`] of its kind have.
fn has_room_for_object(tx: &dyn Raw, of: OfKind, number: u64) -> Result<bool> {
    if tx.count::<AccessRule>(&of)? < MAX_OBJECTS || next_object(tx, of, number)? == Some(number) {
        return Ok(true);
    }
    let mut from = 0;
    for _ in 0..MAX_OBJECTS {
        match next_object(tx, of, from)? {
            Some(found) => from = found + 1,
            None => return Ok(true),
        }
    }
    Ok(false)
}

/// Returns the first object of the kind that has rules of its own and at least the number `from`.
fn next_object(tx: &dyn Raw, (project, kind): OfKind, from: u64) -> Result<Option<u64>> {
    let (from, until) = ((project, kind, Some(from)), (project, kind, None::<u64>));
    let mut found = None;
    tx.scan_between::<AccessRule, _>(&from, &until, Order::Ascending, |row| {
        found = row.meta.object;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
