//! Access controls: rules that give a member, the members of a role, or everyone by default, a level on a project, on one
//! object, or on all objects of a kind in a project. See `docs/spec/access-controls.md`.

pub mod api;
pub mod http;
pub mod levels;
mod on_objects;
pub mod precedence;
pub mod rules;
pub mod shared;

use uuid::Uuid;

use crate::auth::InProject;
use crate::input::{Parsed, does_not_exist, invalid};
use crate::resources::projects::grants::{self, Grant, GrantLevel};
use crate::resources::shared::access_subject::Subject;
use crate::resources::shared::prelude::*;
use crate::resources::{members, projects, roles};

use api::{
    KindField, Kinds, LevelField, OnObjects, ProjectAccessControl, ProjectAccessControls, Rule,
};
pub use api::{NewAccessControl, NewObjectAccessControl, NewResourceAccessControl, RECORDS};
pub use on_objects::{
    body_of_all, body_of_one, require_read, runs_project, update_all, update_one,
};

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
    tx: &impl Tx,
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
    tx: &impl Tx,
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
    grant.map(|grant| rule(&grant, listed).to_json(RULE_SIZE)).transpose()
}

/// Renders the rules on a project, in the order of their creation, with the caller's own access.
pub fn body(tx: &impl Tx, tenant: &InProject) -> Result<Vec<u8>> {
    let level = grants::level_of(tx, &tenant.project, &tenant.member)?;
    let body = ProjectAccessControls {
        access_controls: WrittenBy(&mut |out| write_rules(tx, tenant, out)),
        available_access_levels: &GrantLevel::ALL,
        default_access_level: grants::default_level(tx, &tenant.project)?,
        user_access_level: level,
        user_can_edit_access_levels: level == GrantLevel::Admin,
    };
    body.to_json(2 * RULE_SIZE)
}

fn write_rules(tx: &impl Tx, tenant: &InProject, out: &mut Vec<u8>) -> Result<()> {
    let projects::Meta { organization, id, .. } = tenant.project;
    let mut found: Vec<Grant> = collect::<Grant, _, _>(tx, &(organization, id), Some)?;
    found.sort_by_key(|grant| grant.created_at);
    Array::write(out, |array| {
        for grant in &found {
            if let Some(listed) = listed_subject(tx, organization, grant.subject)? {
                array.push(rule(grant, listed))?;
            }
        }
        Ok(())
    })
}

fn rule(grant: &Grant, listed: ListedSubject) -> ProjectAccessControl {
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
