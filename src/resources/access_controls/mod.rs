//! Access controls: rules that give a member, the members of a role, or everyone by default, a level on a project, on one
//! object, or on all objects of a kind in a project. See `docs/spec/access-controls.md`.

pub mod api;
pub mod http;
pub mod levels;
pub mod rules;
pub mod shared;

use crate::auth::InProject;
use crate::resources::projects::grants::{self, Grant, GrantLevel};
use crate::resources::shared::access_subject::Subject;
use crate::resources::shared::prelude::*;
use crate::resources::{members, projects, roles};

pub use api::{NewAccessControl, NewObjectAccessControl, NewResourceAccessControl, RECORDS};
use api::{
    ObjectAccessControl, ObjectAccessControls, ProjectAccessControl, ProjectAccessControls, Rule,
};
use levels::AccessLevel;
use rules::AccessRule;

/// The subject of a rule, and what responses show of it: a membership, a role, or neither for everyone.
#[derive(Debug, Clone, Copy)]
struct ListedSubject {
    subject: Subject,
    member: Option<MembershipId>,
}

/// Returns the subject that a request names.
///
/// # Errors
/// 400 if it names both a member and a role, or one that the organization does not have.
fn find_subject(
    tx: &dyn Raw,
    organization: OrganizationId,
    member: &Patch<MembershipId>,
    role: &Patch<Uuid>,
) -> Result<ListedSubject> {
    let unnamed = |subject| ListedSubject { subject, member: None };
    match (member.clone().value(), role.clone().map(RoleId).value()) {
        (Some(_), Some(_)) => {
            Err(invalid("You can not scope an access control to both a member and a role."))
        }
        (None, None) => Ok(unnamed(Subject::Everyone)),
        (None, Some(role)) if roles::exists(tx, organization, role)? => {
            Ok(unnamed(Subject::Role(role)))
        }
        (None, Some(role)) => Err(does_not_exist("role", role)),
        (Some(id), None) => match members::find_by_id(tx, organization, id)? {
            Some(member) => {
                Ok(ListedSubject { subject: Subject::User(member.user), member: Some(id) })
            }
            None => Err(does_not_exist("organization_member", id)),
        },
    }
}

/// Returns the subject of a rule for a list; `None` if lists omit the rule. They omit rules for removed roles, and rules
/// for members that the list of members omits.
fn listed_subject(
    tx: &dyn Raw,
    organization: OrganizationId,
    subject: Subject,
) -> Result<Option<ListedSubject>> {
    let (is_listed, member) = match subject {
        Subject::Everyone => (true, None),
        Subject::Role(role) => (roles::exists(tx, organization, role)?, None),
        Subject::User(user) => {
            let member = members::find_listed(tx, organization, user)?.map(|member| member.id);
            (member.is_some(), member)
        }
    };
    Ok(is_listed.then_some(ListedSubject { subject, member }))
}

/// Approximate size of a rule in a response, in bytes.
const RULE_SIZE: usize = 256;

/// Sets or deletes a rule on a project. Returns the JSON of the rule, or `None` if it was deleted.
///
/// # Errors
/// 403 if the caller is not an admin of the project; 400 for an invalid field.
pub fn update(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    sent: &Parsed<NewAccessControl>,
    now: Timestamp,
) -> Result<Option<Vec<u8>>> {
    if grants::level_of(tx, &tenant.project, &tenant.member)? < GrantLevel::Admin {
        return Err(Error::denied("Must be admin to modify project permissions."));
    }
    let NewAccessControl { access_level, organization_member, role } = sent.get()?;
    let projects::Meta { organization, id, .. } = tenant.project;
    let listed = find_subject(tx, organization, organization_member, role)?;
    let grant = match (listed.subject, *access_level) {
        (Subject::Everyone, level) => projects::set_default(tx, (organization, id), level, now)?,
        (subject, Some(level)) => Some(grants::set(tx, organization, id, subject, level, now)?),
        (subject, None) => {
            tx.remove::<Grant>(&(organization, id, subject))?;
            None
        }
    };
    grant.map(|grant| rule_on_project(&grant, listed).to_json(RULE_SIZE)).transpose()
}

/// Renders the rules on a project, in the order of their creation, with the caller's own access.
pub fn body(tx: &dyn Raw, tenant: &InProject) -> Result<Vec<u8>> {
    let level = grants::level_of(tx, &tenant.project, &tenant.member)?;
    let body = ProjectAccessControls {
        access_controls: WrittenBy(&mut |out| write_rules_on_project(tx, tenant, out)),
        available_access_levels: &GrantLevel::ALL,
        default_access_level: grants::default_level(tx, &tenant.project)?,
        user_access_level: level,
        user_can_edit_access_levels: level == GrantLevel::Admin,
    };
    body.to_json(2 * RULE_SIZE)
}

fn write_rules_on_project(tx: &dyn Raw, tenant: &InProject, out: &mut Vec<u8>) -> Result<()> {
    let projects::Meta { organization, id, .. } = tenant.project;
    let mut found: Vec<Grant> = collect::<Grant, _, _>(tx, &(organization, id), Some)?;
    found.sort_by_key(|grant| grant.created_at);
    Array::write(out, |array| {
        for grant in &found {
            if let Some(listed) = listed_subject(tx, organization, grant.subject)? {
                array.push(rule_on_project(grant, listed))?;
            }
        }
        Ok(())
    })
}

fn rule_on_project(grant: &Grant, listed: ListedSubject) -> ProjectAccessControl {
    ProjectAccessControl {
        access_level: grant.level,
        rule: Rule {
            resource: "project",
            resource_id: Some(grant.project.to_string()),
            organization_member: listed.member,
            role: listed.subject.role(),
            created_at: grant.created_at,
            updated_at: grant.updated_at,
        },
    }
}

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
    let kept = rules::set(tx, tenant.project.organization, key, level, now)?;
    rule(&kept, listed).to_json(RULE_SIZE).map(Some)
}

/// Returns whether the caller is an admin of the organization, or of the project by a rule that names the caller or a role
/// of the caller. The rule for everyone does not count: it would let every member open objects that rules hide.
pub fn runs_project(tx: &dyn Raw, tenant: &InProject) -> Result<bool> {
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
pub fn require_read(tx: &dyn Raw, tenant: &InProject, level: AccessLevel) -> Result<bool> {
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
    tx: &dyn Raw,
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
pub fn body_of_all(tx: &dyn Raw, tenant: &InProject, kind: Kind) -> Result<Vec<u8>> {
    let on_kind = rules::level_on_all(tx, tenant, kind)?;
    let of_kinds = || Kind::ALL.into_iter().map(|kind| (kind, None));
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
    tx: &dyn Raw,
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
