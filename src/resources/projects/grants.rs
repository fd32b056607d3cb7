//! Grants: the access of single members, of roles, and of everyone by default to a project. See `docs/spec/access-controls.md`.
//!
//! The access of everyone is the grant for everyone, and the field `access_control`, which is true for no access. Both
//! are one fact, and every change of one changes the other in the same transaction.

use std::collections::HashSet;
use std::iter;

use crate::input::named_values;
use crate::resources::members::Membership;
use crate::resources::roles;
use crate::resources::shared::access_subject::{Subject, highest};
use crate::resources::shared::prelude::*;

use super::{Meta, Project, Settings};

named_values! {
    /// The level of a grant. Levels are ordered from no access to the most.
    #[derive(Serialize, ToSchema)]
    pub enum GrantLevel {
        /// No access. The grant is stored and shown, but has no effect.
        None = "none",
        /// May see the project and work in it.
        Member = "member",
        /// May also edit the access controls of the project.
        Admin = "admin",
    }
}

impl GrantLevel {
    /// Returns the number of the level in `effective_membership_level`; `None` for no access.
    pub const fn number(self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::Member => Some(1),
            Self::Admin => Some(8),
        }
    }
}

/// The access of a subject to one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project.
    pub project: ProjectId,
    /// To whom the grant applies.
    pub subject: Subject,
    /// The level of access.
    pub level: GrantLevel,
    /// When the grant was created.
    pub created_at: Timestamp,
    /// When the level last changed.
    pub updated_at: Timestamp,
}

/// Grants by the member that they name.
pub const BY_USER: Index<Grant, (OrganizationId, UserId)> =
    Index::many(Table::GrantsByUser, |grant| Some((grant.organization, grant.subject.user()?)));
/// Grants by the role that they name.
pub const BY_ROLE: Index<Grant, (OrganizationId, RoleId)> =
    Index::many(Table::GrantsByRole, |grant| Some((grant.organization, grant.subject.role()?)));

impl_record!(Grant {
    table: Grants,
    key: |grant| -> (OrganizationId, ProjectId, Subject) {
        (grant.organization, grant.project, grant.subject)
    },
    indexes: [&BY_USER, &BY_ROLE],
    // The grants on a project that name a role.
    counts: [|grant| {
        grant.subject.role().map(|_| (grant.organization, grant.project).encoded())
    }],
    owner: |grant, _| Ok(Some(grant.organization.owner())),
    references: |grant| {
        [Reference::to::<Project>(&(grant.organization, grant.project))]
            .into_iter()
            .chain(grant.subject.reference(grant.organization))
            .collect::<Vec<_>>()
    },
});

/// Returns the level that the grant for a subject gives on a project, if there is one.
pub fn level_for(tx: &dyn Raw, project: &Meta, subject: Subject) -> Result<Option<GrantLevel>> {
    let grant = tx.meta::<Grant>(&(project.organization, project.id, subject))?;
    Ok(grant.map(|grant| grant.level))
}

/// Returns the highest level that grants on a project give to the member or a role of the member, and to which; `None` if
/// there is no such grant, or it gives no access.
pub fn given(
    tx: &dyn Raw,
    project: &Meta,
    member: &Membership,
) -> Result<Option<(GrantLevel, Subject)>> {
    let Meta { organization, id, .. } = *project;
    let roles = if tx.count::<Grant>(&(organization, id))? > 0 {
        roles::of_user(tx, organization, member.user)?
    } else {
        Vec::new()
    };
    let named = iter::once(Subject::User(member.user)).chain(roles.into_iter().map(Subject::Role));
    let highest = highest(named, |subject| level_for(tx, project, subject))?;
    Ok(highest.filter(|(level, _)| *level > GrantLevel::None))
}

/// Returns the level of everyone on a project, which is `member` without a grant for everyone.
pub fn default_level(tx: &dyn Raw, project: &Meta) -> Result<GrantLevel> {
    Ok(level_for(tx, project, Subject::Everyone)?.unwrap_or(GrantLevel::Member))
}

/// What decides the level of a member on a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The member is an admin or owner of the organization.
    Admin,
    /// The level of everyone.
    Default,
    /// The grant for the member, or for this role of the member, gives more than everyone has.
    Grant(Subject),
}

/// Returns the level of a member on a project: admin for admins of the organization; otherwise the highest level of
/// all grants that apply.
pub fn level_of(tx: &dyn Raw, project: &Meta, member: &Membership) -> Result<GrantLevel> {
    decide(tx, project, member).map(|(level, _)| level)
}

/// Returns the level of a member on a project as [`level_of`] does, and what decides it.
pub fn decide(
    tx: &dyn Raw,
    project: &Meta,
    member: &Membership,
) -> Result<(GrantLevel, DecidedBy)> {
    if member.level.is_admin() {
        return Ok((GrantLevel::Admin, DecidedBy::Admin));
    }
    let by_default = default_level(tx, project)?;
    Ok(match given(tx, project, member)?.filter(|(level, _)| *level > by_default) {
        Some((level, subject)) => (level, DecidedBy::Grant(subject)),
        None => (by_default, DecidedBy::Default),
    })
}

/// Returns the projects to which a member has access by a grant for the member or for a role of the member.
pub fn of_member(
    tx: &dyn Raw,
    organization: OrganizationId,
    user: UserId,
) -> Result<HashSet<ProjectId>> {
    let mut projects = HashSet::new();
    let mut add = |row: Row<'_, Grant>| {
        if row.meta.level > GrantLevel::None {
            projects.insert(row.meta.project);
        }
        Ok(())
    };
    let all = Window::all(Order::Ascending);
    tx.walk(&BY_USER, &(organization, user), all, &mut add)?;
    for role in roles::of_user(tx, organization, user)? {
        tx.walk(&BY_ROLE, &(organization, role), all, &mut add)?;
    }
    Ok(projects)
}

/// Creates a grant or sets its level. A grant that already has this level does not change.
///
/// The grant for everyone and the field `access_control` of the project are one fact: use
/// [`set_default`] for it.
pub fn set(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
    subject: Subject,
    level: GrantLevel,
    now: Timestamp,
) -> Result<Grant> {
    let grant = match tx.find::<Grant>(&(organization, project, subject))? {
        Some(grant) if grant.level == level => return Ok(grant),
        Some(grant) => Grant { level, updated_at: now, ..grant },
        None => Grant { organization, project, subject, level, created_at: now, updated_at: now },
    };
    tx.put(&grant)?;
    Ok(grant)
}

/// Applies the grant of an accepted invite. Never lowers a level, and does nothing if the project no longer
/// exists.
pub fn raise(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    project: ProjectId,
    user: UserId,
    level: GrantLevel,
    now: Timestamp,
) -> Result<()> {
    let subject = Subject::User(user);
    let held = tx.meta::<Grant>(&(organization, project, subject))?;
    let held = held.map_or(GrantLevel::None, |grant| grant.level);
    if level > held && tx.exists::<Project>(&(organization, project))? {
        set(tx, organization, project, subject, level, now)?;
    }
    Ok(())
}

/// Sets the level of everyone on a project, and `access_control` with it. `None` deletes the grant, which opens the
/// project.
///
/// # Errors
/// 404 if the project does not exist.
pub fn set_default(
    tx: &mut WriteTx<'_>,
    (organization, id): (OrganizationId, ProjectId),
    level: Option<GrantLevel>,
    now: Timestamp,
) -> Result<Option<Grant>> {
    let (key, of_everyone) = ((organization, id), (organization, id, Subject::Everyone));
    let grant = if let Some(level) = level {
        tx.log_about::<Grant>(&of_everyone);
        Some(set(tx, organization, id, Subject::Everyone, level, now)?)
    } else {
        tx.remove::<Grant>(&of_everyone)?;
        None
    };
    let (mut project, mut settings): (Project, Settings) = (tx.get(&key)?, tx.get(&key)?);
    let is_private = level == Some(GrantLevel::None);
    if project.fields.access_control != is_private {
        project.fields.access_control = is_private;
        settings.fields.updated_at = now;
        // Opening a project is logged as its own change, and not as that of the grant which closed it.
        if grant.is_none() {
            tx.log_about::<Project>(&key);
        }
        tx.put(&project)?;
        tx.put(&settings)?;
    }
    Ok(grant)
}

/// Sets or deletes the grant for everyone, as `access_control` of the stored project says.
pub(super) fn follow_access_control(
    tx: &mut WriteTx<'_>,
    project: &Project,
    now: Timestamp,
) -> Result<()> {
    let (organization, id) = (project.meta.organization, project.meta.id);
    let key = (organization, id, Subject::Everyone);
    if project.fields.access_control {
        set(tx, organization, id, Subject::Everyone, GrantLevel::None, now)?;
    } else if tx.meta::<Grant>(&key)?.is_some_and(|grant| grant.level == GrantLevel::None) {
        tx.remove::<Grant>(&key)?;
    }
    Ok(())
}
