//! Authorization, in front of every route: authenticates the caller and checks its permissions. See
//! `docs/spec/authentication.md` for the order of the checks.
//!
//! [`authorize`] is a plain function over a transaction. It runs first in the request's snapshot, and again inside
//! each write, so that a permission that was revoked in between stops the write.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fair_queue::Consumer;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId};
use crate::resources::api_keys::{self, ApiKey, KeyPermissions};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::{self, Organization};
use crate::resources::projects;
use crate::resources::users::{self, User};
use crate::store::{Order, Tx};
use crate::time::Timestamp;

use super::key_cache::VerifiedKey;
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
#[derive(Clone)]
pub struct AuthRequest {
    /// The verified key of the request.
    pub key: VerifiedKey,
    /// The requirements of the route.
    pub requirements: Requirements,
    /// The kind of object that the path names.
    pub target: PathTarget,
    /// The ids in the path.
    pub ids: PathIds,
}

/// The authenticated caller of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub user: users::Meta,
    /// The caller's key, with its permissions.
    pub key: Arc<CallerKey>,
}

impl Caller {
    /// Returns the organizations that the key is restricted to, directly or by their projects, or `None` for an
    /// unrestricted key.
    fn scoped_organizations(&self, tx: &impl Tx) -> Result<Option<BTreeSet<OrganizationId>>> {
        let only = self.key.scoped_organizations();
        let only: Option<BTreeSet<_>> = only.map(|only| only.iter().copied().collect());
        let Some(projects) = self.key.scoped_projects() else { return Ok(only) };
        let mut within = BTreeSet::new();
        for id in projects {
            within.extend(projects::find_by_id(tx, *id)?.map(|project| project.organization));
        }
        Ok(Some(only.map_or_else(|| within.clone(), |only| &only & &within)))
    }

    /// Returns the caller's membership of an organization, if responses to this caller may show the organization: the
    /// key's restrictions must include it, and it must allow the caller to use API keys.
    pub fn open_membership(
        &self,
        tx: &impl Tx,
        organization: OrganizationId,
    ) -> Result<Option<Membership>> {
        let named = self.scoped_organizations(tx)?;
        if named.is_some_and(|named| !named.contains(&organization)) {
            return Ok(None);
        }
        match members::find(tx, organization, self.user.id)? {
            Some(member) if accepts_keys_of(tx, &member)? => Ok(Some(member)),
            _ => Ok(None),
        }
    }

    /// Returns at most `limit` memberships of such organizations, the oldest first.
    pub fn open_memberships(&self, tx: &impl Tx, limit: usize) -> Result<Vec<Membership>> {
        let mut open = Vec::new();
        let Some(named) = self.scoped_organizations(tx)? else {
            tx.walk_until(&members::BY_USER, &self.user.id, 0, Order::Ascending, |row| {
                if open.len() < limit && accepts_keys_of(tx, &row.meta)? {
                    open.push(row.meta);
                }
                Ok(if open.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            })?;
            return Ok(open);
        };
        for organization in named {
            let member = members::find(tx, organization, self.user.id)?;
            match member {
                Some(member) if open.len() < limit && accepts_keys_of(tx, &member)? => {
                    open.push(member);
                }
                _ => {}
            }
        }
        Ok(open)
    }
}

/// Returns whether the member's organization exists and allows the member to use API keys.
fn accepts_keys_of(tx: &impl Tx, member: &Membership) -> Result<bool> {
    let organization = tx.meta::<Organization>(&member.organization)?;
    Ok(organization.is_some_and(|organization| allows_member_keys(&organization, member)))
}

/// The key of a request, with its permissions.
#[derive(Debug)]
pub struct CallerKey {
    /// The key's public id.
    pub id: ApiKeyId,
    /// The permissions of the secret that the caller sent.
    pub permissions: KeyPermissions,
}

impl CallerKey {
    /// Returns the organizations that the key is restricted to, or `None` for an unrestricted key.
    pub fn scoped_organizations(&self) -> Option<&[OrganizationId]> {
        let only = self.permissions.organizations.as_slice();
        (!only.is_empty()).then_some(only)
    }

    /// Returns the projects that the key is restricted to, or `None` for an unrestricted key.
    pub fn scoped_projects(&self) -> Option<&[ProjectId]> {
        let only = self.permissions.projects.as_slice();
        (!only.is_empty()).then_some(only)
    }

    /// Returns whether the key has `scope`, for checks beyond the route's own scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.permissions.scopes.allows(scope)
    }

    /// Returns whether the key's restrictions include the project.
    pub fn reaches_project(&self, id: ProjectId) -> bool {
        self.scoped_projects().is_none_or(|only| only.contains(&id))
    }
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
pub fn authorize(tx: &impl Tx, auth: &AuthRequest, now: Timestamp) -> Result<AuthContext> {
    let key = find_valid_key(tx, &auth.key, now)?;
    let user = active_user(tx, key.user)?;
    let found = resolve_path(tx, auth, &user, &key.projects)?;
    require_key_in_scope(&key, auth.target, &found, &auth.ids)?;
    if let Some(what) = auth.requirements.unscoped_key {
        require_unscoped_key(&key, what)?;
    }
    if let Some(scope) = auth.requirements.scope
        && !key.scopes.allows(scope)
    {
        return Err(Error::missing_scope(scope));
    }
    let ResolvedPath { organization, project } = found;
    let member = match &organization {
        Some(organization) => {
            Some(require_membership(tx, auth.target, organization, project.as_ref(), &user)?)
        }
        None => None,
    };
    if member.as_ref().is_some_and(|member| member.level < auth.requirements.level) {
        return Err(Error::denied("Your organization access level is insufficient."));
    }
    if let (true, Some(member)) = (auth.requirements.can_invite, &member) {
        require_can_invite(tx, member)?;
    }
    let key = Arc::new(CallerKey { id: key.id, permissions: KeyPermissions::of(key) });
    Ok(AuthContext { caller: Caller { user, key }, member, project })
}

/// Returns the stored key, if the verified secret is still valid and the key has not expired. A rotated secret stays
/// valid during its grace period.
fn find_valid_key(tx: &impl Tx, presented: &VerifiedKey, now: Timestamp) -> Result<api_keys::Meta> {
    let key = tx.meta::<ApiKey>(&presented.key())?.ok_or_else(Error::authentication_failed)?;
    let key = api_keys::key_for_secret(tx, key, presented.hash())?;
    key.filter(|key| !key.is_expired(now)).ok_or_else(Error::authentication_failed)
}

fn active_user(tx: &impl Tx, id: UserId) -> Result<users::Meta> {
    tx.meta::<User>(&id)?.filter(|user| user.is_active).ok_or_else(Error::authentication_failed)
}

/// The objects that the path's ids name.
struct ResolvedPath {
    organization: Option<organizations::Meta>,
    project: Option<projects::Meta>,
}

fn resolve_path(
    tx: &impl Tx,
    auth: &AuthRequest,
    user: &users::Meta,
    only: &[ProjectId],
) -> Result<ResolvedPath> {
    let PathIds { organization, project } = &auth.ids;
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
            let missing = || match auth.target {
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

fn find_organization(tx: &impl Tx, id: &str, user: &users::Meta) -> Result<organizations::Meta> {
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
    tx: &impl Tx,
    id: &str,
    user: &users::Meta,
    only: &[ProjectId],
) -> Result<Option<projects::Meta>> {
    match id {
        "@current" => current_project(tx, user, only),
        id => match id.parse() {
            Ok(id) => projects::find_by_id(tx, id),
            Err(_) => Ok(None),
        },
    }
}

/// Resolves `@current` as a project.
fn current_project(
    tx: &impl Tx,
    user: &users::Meta,
    only: &[ProjectId],
) -> Result<Option<projects::Meta>> {
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
    key: &api_keys::Meta,
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

fn require_unscoped_key(key: &api_keys::Meta, what: &str) -> Result<()> {
    if key.organizations.is_empty() && key.projects.is_empty() {
        return Ok(());
    }
    let who = "API keys limited to organizations or projects";
    Err(Error::denied(format!("{who} cannot {what}.")))
}

/// Returns whether the organization allows the member to use API keys: it can forbid them to plain members.
fn allows_member_keys(organization: &organizations::Meta, member: &Membership) -> bool {
    organization.members_can_use_personal_api_keys || member.level.is_admin()
}

/// Allows admins to invite, and plain members if the organization's settings do.
fn require_can_invite(tx: &impl Tx, member: &Membership) -> Result<()> {
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
    tx: &impl Tx,
    target: PathTarget,
    organization: &organizations::Meta,
    project: Option<&projects::Meta>,
    user: &users::Meta,
) -> Result<Membership> {
    let member = members::find(tx, organization.id, user.id)?.ok_or_else(|| match target {
        PathTarget::Project => Error::not_found(),
        PathTarget::InProject => Error::denied("You don't have access to the project."),
        _ => Error::denied("You do not have permission to perform this action."),
    })?;
    if !allows_member_keys(organization, &member) {
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
