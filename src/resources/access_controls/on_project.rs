//! Access rules on a project, stored as [`Grant`] records. The rule for everyone also is the project's field
//! `access_control`, which is true for level `none`.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::input::Parsed;
use crate::json::{Array, WriteJson, WrittenBy};
use crate::resources::projects;
use crate::resources::projects::grants::{self, Grant, GrantLevel};
use crate::resources::shared::access_subject::Subject;
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::api::{ProjectAccessControl, ProjectAccessControls, Rule};
use super::{ListedSubject, NewAccessControl, RULE_SIZE, find_subject, listed_subject};

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
    if level(tx, tenant)? < GrantLevel::Admin {
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

/// Returns the caller's level in the project: admin for admins of the organization; otherwise the highest level of the
/// rules that apply.
pub(super) fn level(tx: &impl Tx, tenant: &InProject) -> Result<GrantLevel> {
    grants::level_of(tx, &tenant.project, &tenant.member)
}

/// Renders the rules on a project, in the order of their creation, with the caller's own access.
pub fn body(tx: &impl Tx, tenant: &InProject) -> Result<Vec<u8>> {
    let level = level(tx, tenant)?;
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
    let mut found = Vec::new();
    tx.scan::<Grant, _>(&(organization, id), Window::all(Order::Ascending), |row| {
        found.push(row.meta);
        Ok(())
    })?;
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
