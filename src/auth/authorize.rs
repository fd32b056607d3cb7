//! Authorization, in front of every route: authenticates the caller and checks its permissions. See
//! `docs/spec/authentication.md` for the order of the checks.
//!
//! [`authorize`] is a plain function over a transaction. It runs first in the request's snapshot, and again inside
//! each write, so that a permission that was revoked in between stops the write. [`Authorization`] skips a run that would
//! return the same result.
//!
//! [`Authorization`]: super::Authorization

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::fair::fair_queue::Consumer;
use crate::ids::ProjectId;
use crate::resources::api_keys::KeyPermissions;
use crate::resources::members::{self, Membership};
use crate::resources::organizations::{self, Organization};
use crate::resources::projects;
use crate::resources::users::{self, User};
use crate::store::{Raw, Tx};

use super::caller::{Caller, CallerKey, Credential};
use super::requirements::{PathTarget, Requirements};

/// The ids in a request's path, as the client sent them.
#[derive(Debug, Clone, Default)]
pub struct PathIds {
    /// An organization's id, or `@current`.
    pub organization: Option<String>,
    /// A project's id, or `@current`.
    pub project: Option<String>,
}

/// The input of [`authorize`]. A write keeps it to run the check again.
pub struct AuthRequest {
    /// The verified key or session of the request.
    pub credential: Credential,
    /// The requirements of the route.
    pub requirements: Requirements,
    /// The kind of object that the path names.
    pub target: PathTarget,
    /// The ids in the path.
    pub ids: PathIds,
}

/// The result of a successful check.
pub struct AuthContext {
    /// The authenticated caller.
    pub caller: Caller,
    /// The caller's membership of the path's organization, if the path names an organization or a project.
    pub member: Option<Membership>,
    /// The project in the path, if the path names one.
    pub project: Option<projects::Meta>,
}

impl AuthContext {
    /// Returns the tenant that the request counts towards.
    pub fn consumer(&self) -> Consumer {
        match &self.member {
            Some(member) => Consumer::Organization(member.organization.0),
            None => Consumer::User(self.caller.user.id.0),
        }
    }
}

/// Checks that the caller may use the route.
///
/// # Errors
/// 401, 404 or 403, in the order that `docs/spec/authentication.md` describes.
pub fn authorize(tx: &dyn Raw, auth: &AuthRequest, now: Timestamp) -> Result<AuthContext> {
    let key = CallerKey::find(tx, &auth.credential, now)?;
    let user = tx.meta::<User>(&key.permissions.user)?.filter(|user| user.is_active);
    let user = user.ok_or_else(Error::authentication_failed)?;
    let caller = Caller { user, key: Arc::new(key) };
    admit(tx, caller, (auth.requirements, auth.target), &auth.ids)
}

/// Checks that an authenticated caller may use a route at the objects that these ids name.
///
/// # Errors
/// 404 or 403, as [`authorize`].
pub(super) fn admit(
    tx: &dyn Raw,
    caller: Caller,
    (requirements, target): (Requirements, PathTarget),
    ids: &PathIds,
) -> Result<AuthContext> {
    let Caller { user, key } = &caller;
    let found = resolve_path(tx, (target, ids), user, &key.permissions.projects)?;
    require_key_in_scope(&key.permissions, target, &found, ids)?;
    if let Some(what) = requirements.unscoped_key
        && !key.permissions.is_unscoped()
    {
        let who = "API keys limited to organizations or projects";
        return Err(Error::denied(format!("{who} cannot {what}.")));
    }
    if let Some(scope) = requirements.scope
        && !key.has_scope(scope)
    {
        return Err(Error::missing_scope(scope));
    }
    let ResolvedPath { organization, project } = found;
    let member = match &organization {
        Some(organization) => {
            let found = (organization, project.as_ref());
            Some(require_membership(tx, target, found, user, key)?)
        }
        None => None,
    };
    if member.as_ref().is_some_and(|member| member.level < requirements.level) {
        return Err(Error::denied("Your organization access level is insufficient."));
    }
    if let (true, Some(member)) = (requirements.can_invite, &member) {
        require_can_invite(tx, member)?;
    }
    Ok(AuthContext { caller, member, project })
}

/// The objects that the path's ids name.
struct ResolvedPath {
    organization: Option<organizations::Meta>,
    project: Option<projects::Meta>,
}

fn resolve_path(
    tx: &dyn Raw,
    (target, ids): (PathTarget, &PathIds),
    user: &users::Meta,
    only: &[ProjectId],
) -> Result<ResolvedPath> {
    let PathIds { organization, project } = ids;
    match (organization, project) {
        (None, None) => Ok(ResolvedPath { organization: None, project: None }),
        (Some(id), None) => {
            Ok(ResolvedPath { organization: Some(find_organization(tx, id, user)?), project: None })
        }
        // Only members learn whether the organization has such a project: a missing one is reported after the membership
        // check.
        (Some(id), Some(project)) => {
            let organization = find_organization(tx, id, user)?;
            let project = find_project(tx, project, user, only)?;
            let project = project.filter(|project| project.organization == organization.id);
            Ok(ResolvedPath { organization: Some(organization), project })
        }
        (None, Some(id)) => {
            let missing = || match target {
                PathTarget::Project => Error::not_found(),
                _ => Error::not_found_as("Project not found."),
            };
            let project = find_project(tx, id, user, only)?.ok_or_else(missing)?;
            let organization = tx.meta::<Organization>(&project.organization)?;
            let organization = Some(organization.ok_or_else(missing)?);
            Ok(ResolvedPath { organization, project: Some(project) })
        }
    }
}

fn find_organization(tx: &dyn Raw, id: &str, user: &users::Meta) -> Result<organizations::Meta> {
    let id = match id {
        "@current" => members::current_organization(tx, user)?,
        id => id.parse().ok(),
    };
    let found = match id {
        Some(id) => tx.meta::<Organization>(&id)?,
        None => None,
    };
    found.ok_or_else(|| Error::not_found_as("Organization not found."))
}

fn find_project(
    tx: &dyn Raw,
    id: &str,
    user: &users::Meta,
    only: &[ProjectId],
) -> Result<Option<projects::Meta>> {
    if id != "@current" {
        return id.parse().map_or(Ok(None), |id| projects::find_by_id(tx, id));
    }
    let member = match members::current_organization(tx, user)? {
        Some(organization) => members::find(tx, organization, user.id)?,
        None => None,
    };
    let only = (!only.is_empty()).then_some(only);
    projects::current_project(tx, user, member.as_ref(), only)
}

/// Checks the key's own restrictions. The error repeats an id only if the path contains it, so that a restricted key
/// does not learn ids behind `@current` or a project.
fn require_key_in_scope(
    key: &KeyPermissions,
    target: PathTarget,
    found: &ResolvedPath,
    ids: &PathIds,
) -> Result<()> {
    if !key.projects.is_empty() {
        match (target, &found.project) {
            (PathTarget::Caller, _) => {}
            (PathTarget::Organizations | PathTarget::Organization, _)
            | (PathTarget::OrganizationProject, None) => {
                return Err(Error::denied(
                    "API keys with scoped projects are only supported on project-based endpoints.",
                ));
            }
            (_, Some(project)) if key.projects.contains(&project.id) => {}
            _ => return Err(out_of_scope("project", ids.project.as_deref())),
        }
    }
    match &found.organization {
        Some(organization)
            if !key.organizations.is_empty() && !key.organizations.contains(&organization.id) =>
        {
            Err(match &ids.organization {
                Some(id) => out_of_scope("organization", Some(id)),
                None => out_of_scope("project", ids.project.as_deref()),
            })
        }
        _ => Ok(()),
    }
}

fn out_of_scope(what: &str, sent: Option<&str>) -> Error {
    let id = sent.filter(|id| *id != "@current").map_or(String::new(), |id| format!(": ID {id}"));
    Error::denied(format!("API key does not have access to the requested {what}{id}."))
}

/// Allows admins to invite, and plain members if the organization's settings do.
fn require_can_invite(tx: &dyn Raw, member: &Membership) -> Result<()> {
    if member.level.is_admin()
        || tx.get::<Organization>(&member.organization)?.fields.members_can_invite
    {
        return Ok(());
    }
    Err(Error::denied("You do not have permission to perform this action."))
}

/// Returns the caller's membership. As in PostHog, the error depends on the target: a project that the caller may not
/// see is 404, and an object inside it is 403.
fn require_membership(
    tx: &dyn Raw,
    target: PathTarget,
    (organization, project): (&organizations::Meta, Option<&projects::Meta>),
    user: &users::Meta,
    key: &CallerKey,
) -> Result<Membership> {
    let member = members::find(tx, organization.id, user.id)?.ok_or_else(|| match target {
        PathTarget::Project => Error::not_found(),
        PathTarget::InProject => Error::denied("You don't have access to the project."),
        _ => Error::denied("You do not have permission to perform this action."),
    })?;
    if !key.is_allowed_in(organization, &member) {
        let name = tx.get::<Organization>(&organization.id)?.fields.name;
        return Err(Error::denied(format!(
            "Organization '{name}' does not allow using personal API keys. Contact an admin to enable personal API keys for this organization."
        )));
    }
    match (target, project) {
        (PathTarget::OrganizationProject, None) => Err(Error::not_found()),
        (_, Some(project)) if !projects::is_visible(tx, &member, project)? => Err(match target {
            PathTarget::InProject => Error::denied("You don't have access to the project."),
            _ => Error::not_found(),
        }),
        _ => Ok(member),
    }
}
