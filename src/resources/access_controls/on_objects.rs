//! Access rules on one object, and on all objects of a kind in a project. They are stored as [`AccessRule`] records. Limits
//! on their number bound the responses that list them.

use std::ops::ControlFlow;

use crate::auth::InProject;
use crate::input::Parsed;
use crate::resources::access_controls::levels::{self, AccessLevel};
use crate::resources::projects::grants::{self, GrantLevel};
use crate::resources::shared::access_subject::Subject;
use crate::resources::shared::prelude::*;

use super::api::{ObjectAccessControl, ObjectAccessControls, Rule};
use super::rules::{self, AccessRule, RuleKey};
use super::{
    ListedSubject, NewObjectAccessControl, NewResourceAccessControl, RULE_SIZE, find_subject,
    listed_subject,
};

/// Sets or deletes a rule on one object. Returns the JSON of the rule, or `None` if it was deleted. `level` is the
/// caller's level on the object.
///
/// # Errors
/// 403 if the caller may not edit the rules of the object, or if the body names another object; 400 for an invalid
/// field.
pub fn update_one(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    object: Object,
    level: AccessLevel,
    sent: &Parsed<NewObjectAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    level.require_manage(runs_project(tx, tenant)?, object.kind())?;
    let sent = sent.get()?;
    require_target(object, sent)?;
    let subject =
        find_subject(tx, tenant.project.organization, &sent.organization_member, &sent.role)?;
    put(tx, tenant, (object.kind(), Some(object.number())), subject, sent.access_level, now)
}

/// Checks that the body names no other object than the path.
fn require_target(object: Object, sent: &NewObjectAccessControl) -> Result<()> {
    let (kind, number) = (object.kind().as_str(), object.number().to_string());
    let other = |sent: &Option<String>, own| sent.as_deref().is_some_and(|sent| sent != own);
    if other(&sent.resource, kind) || other(&sent.resource_id, &number) {
        return Err(Error::denied(
            "Cannot modify access controls for a resource different from the URL target.",
        ));
    }
    Ok(())
}

/// Sets or deletes a rule on all objects of a kind in a project. Returns the JSON of the rule, or `None` if it was
/// deleted.
///
/// # Errors
/// 403 if the caller is not an admin of the organization; 400 for an invalid field.
pub fn update_all(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    sent: &Parsed<NewResourceAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    if !tenant.member.level.is_admin() {
        return Err(Error::denied(
            "Must be an Organization admin to modify project-wide permissions.",
        ));
    }
    let NewResourceAccessControl { access_level, resource, organization_member, role } =
        sent.get()?;
    if let Some(level) = access_level {
        levels::require_within(*level, *resource)?;
    }
    let subject = find_subject(tx, tenant.project.organization, organization_member, role)?;
    put(tx, tenant, (*resource, None), subject, *access_level, now)
}

fn put(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    (kind, object): (Kind, Option<u64>),
    listed: ListedSubject,
    level: Option<AccessLevel>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    let key = (tenant.project.id, kind, object, listed.subject);
    let Some(level) = level else {
        tx.remove::<AccessRule>(&key)?;
        return Ok(None);
    };
    require_room(tx, &key)?;
    let kept = rules::set(tx, tenant.project.organization, key, level, now)?;
    rule(&kept, listed).to_json(RULE_SIZE).map(Some)
}

/// Returns whether the caller is an admin of the organization, or of the project by a rule that names the caller or a role
/// of the caller. The rule for everyone does not count: it would let every member open objects that rules hide.
pub fn runs_project(tx: &impl Tx, tenant: &InProject) -> Result<bool> {
    let InProject { member, project } = tenant;
    if member.level.is_admin() {
        return Ok(true);
    }
    let given = grants::given(tx, project, member)?;
    Ok(given.is_some_and(|(level, _)| level == GrantLevel::Admin))
}

/// Checks that the caller may read the rules on an object. Returns whether the caller may edit them. `level` is the
/// caller's level on the object.
///
/// # Errors
/// 403 if the caller may neither view the object nor edit its rules.
pub fn require_read(tx: &impl Tx, tenant: &InProject, level: AccessLevel) -> Result<bool> {
    let can_edit = level.can_manage(runs_project(tx, tenant)?);
    if !can_edit {
        level.require(AccessLevel::Viewer)?;
    }
    Ok(can_edit)
}

/// Renders the rules on an object with the caller's own access. `level` is the caller's level on the object.
///
/// # Errors
/// 403 if the caller may neither view the object nor edit its rules.
pub fn body_of_one(
    tx: &impl Tx,
    tenant: &InProject,
    object: Object,
    level: AccessLevel,
) -> Result<Vec<u8>> {
    let can_edit = require_read(tx, tenant, level)?;
    let for_everyone = (tenant.project.id, object.kind(), None, Subject::Everyone);
    let default = rules::level_for(tx, &for_everyone)?;
    let of_object = [(object.kind(), Some(object.number()))];
    let body = ObjectAccessControls {
        access_controls: WrittenBy(&mut |out| write_rules(tx, tenant, of_object, out)),
        available_access_levels: &AccessLevel::ALL,
        default_access_level: default.unwrap_or(AccessLevel::Editor),
        user_access_level: level,
        user_can_edit_access_levels: can_edit,
    };
    body.to_json(2 * RULE_SIZE)
}

/// Renders the rules on all objects of each kind in a project with the caller's own access. The level of the caller
/// is that on the objects of `kind`.
pub fn body_of_all(tx: &impl Tx, tenant: &InProject, kind: Kind) -> Result<Vec<u8>> {
    let on_kind = rules::level_on_all(tx, tenant, kind)?;
    let of_kinds = || Kind::ALL.iter().map(|kind| (*kind, None));
    let body = ObjectAccessControls {
        access_controls: WrittenBy(&mut |out| write_rules(tx, tenant, of_kinds(), out)),
        available_access_levels: &AccessLevel::ALL,
        default_access_level: AccessLevel::Editor,
        user_access_level: levels::on_object(&tenant.member, None, on_kind),
        user_can_edit_access_levels: tenant.member.level.is_admin(),
    };
    body.to_json(2 * RULE_SIZE)
}

/// Appends the rules on these objects in the order of their creation.
fn write_rules(
    tx: &impl Tx,
    tenant: &InProject,
    targets: impl IntoIterator<Item = (Kind, Option<u64>)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut found: Vec<AccessRule> = Vec::new();
    for (kind, object) in targets {
        let of_target = (tenant.project.id, kind, object);
        found.extend(collect::<AccessRule, _, Vec<_>>(tx, &of_target, Some)?);
    }
    found.sort_by_key(|rule| rule.created_at);
    Array::write(out, |array| {
        for row in &found {
            if let Some(listed) = listed_subject(tx, row.organization, row.subject)? {
                array.push(rule(row, listed))?;
            }
        }
        Ok(())
    })
}

fn rule(rule: &AccessRule, listed: ListedSubject) -> ObjectAccessControl {
    ObjectAccessControl {
        access_level: rule.level,
        rule: Rule {
            resource: rule.kind.as_str(),
            resource_id: rule.object.map(|number| number.to_string()),
            organization_member: listed.member,
            role: listed.subject.role(),
            created_at: rule.created_at,
            updated_at: rule.updated_at,
        },
    }
}

/// The maximum number of objects of a kind in a project that have rules of their own.
const MAX_OBJECTS: u64 = 1_000;
/// The maximum number of rules on one object.
const MAX_ON_OBJECT: usize = 1_000;
/// The maximum number of rules of a project on all objects of a kind, over all kinds.
const MAX_ON_KINDS: usize = 5_000;

/// The objects of a kind in a project.
type OfKind = (ProjectId, Kind);

/// Checks that a project may have a rule with this key.
///
/// # Errors
/// 400 if it has none yet, and its rules reached a limit.
fn require_room(tx: &impl Tx, key: &RuleKey) -> Result<()> {
    let (project, kind, object, _) = *key;
    let (of, word) = ((project, kind), kind.as_str());
    let reached = match object {
        _ if tx.exists::<AccessRule>(key)? => return Ok(()),
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

fn has_room_on_kinds(tx: &impl Tx, project: ProjectId) -> Result<bool> {
    let mut left = MAX_ON_KINDS;
    for kind in Kind::ALL {
        left -= count(tx, (project, *kind), None, left)?;
    }
    Ok(left > 0)
}

/// Counts the rules on one object, or on all objects of a kind, up to `limit`.
fn count(tx: &impl Tx, of: OfKind, object: Option<u64>, limit: usize) -> Result<usize> {
    let mut count = 0;
    let window = Window { offset: 0, limit, order: Order::Ascending };
    tx.scan::<AccessRule, _>(&(of.0, of.1, object), window, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Returns whether an object may have rules of its own: it has some, or fewer than [`MAX_OBJECTS`] of its kind have.
fn has_room_for_object(tx: &impl Tx, of: OfKind, number: u64) -> Result<bool> {
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
fn next_object(tx: &impl Tx, (project, kind): OfKind, from: u64) -> Result<Option<u64>> {
    let (from, until) = ((project, kind, Some(from)), (project, kind, None::<u64>));
    let mut found = None;
    tx.scan_between::<AccessRule, _>(&from, &until, Order::Ascending, |row| {
        found = row.meta.object;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
