//! The gate in front of every route: who is asking, and may they come in here (decisions §1, order of
//! checks).
//!
//! [`authorize`] is a plain rule over a transaction. It runs in the request's snapshot before anything
//! else is looked at, and once more inside each write, so that rights that ended meanwhile refuse it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fair::Consumer;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId};
use crate::resources::api_keys::{self, ApiKey, Holdings};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::{self, Organization};
use crate::resources::projects;
use crate::resources::users::{self, User};
use crate::store::{Order, Tx};
use crate::time::Timestamp;

use super::matches::Match;
use super::needs::{Needs, Target};

/// The ids a path names, as they were sent.
#[derive(Debug, Clone, Default)]
pub struct PathIds {
    /// An organization's id, or `@current`.
    pub organization: Option<String>,
    /// A project's id, or `@current`.
    pub project: Option<String>,
}

/// A question to the gate; asked again inside a write.
#[derive(Clone)]
pub struct Ask {
    /// The key that was presented.
    pub presented: Match,
    /// What the route asks of its caller.
    pub needs: Needs,
    /// What the path is about.
    pub target: Target,
    /// The ids it names.
    pub ids: PathIds,
}

/// Who is asking.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub user: users::Head,
    /// The key, and what it holds.
    pub key: Arc<Limits>,
}

impl Caller {
    /// The organizations that the key's limits name: those it is limited to, and those of the projects it is
    /// limited to. None for a key without limits.
    fn named_organizations(&self, tx: &impl Tx) -> Result<Option<BTreeSet<OrganizationId>>> {
        let only = self.key.only_organizations();
        let only: Option<BTreeSet<_>> = only.map(|only| only.iter().copied().collect());
        let Some(projects) = self.key.only_projects() else { return Ok(only) };
        let mut within = BTreeSet::new();
        for id in projects {
            within.extend(projects::find_by_id(tx, *id)?.map(|project| project.organization));
        }
        Ok(Some(only.map_or_else(|| within.clone(), |only| &only & &within)))
    }

    /// The caller's membership of an organization, if the key shows that and it lets the caller's keys in: what
    /// answers may show.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn open_membership(
        &self,
        tx: &impl Tx,
        organization: OrganizationId,
    ) -> Result<Option<Membership>> {
        let named = self.named_organizations(tx)?;
        if named.is_some_and(|named| !named.contains(&organization)) {
            return Ok(None);
        }
        match members::find(tx, organization, self.user.id)? {
            Some(member) if is_open(tx, &member)? => Ok(Some(member)),
            _ => Ok(None),
        }
    }

    /// The caller's memberships of such organizations, oldest first, at most `limit`.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn open_memberships(&self, tx: &impl Tx, limit: usize) -> Result<Vec<Membership>> {
        let mut open = Vec::new();
        let Some(named) = self.named_organizations(tx)? else {
            tx.walk_until(&members::BY_USER, &self.user.id, 0, Order::Ascending, |row| {
                if open.len() < limit && is_open(tx, &row.head)? {
                    open.push(row.head);
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
                Some(member) if open.len() < limit && is_open(tx, &member)? => open.push(member),
                _ => {}
            }
        }
        Ok(open)
    }
}

/// Whether a member's organization is there and lets the member's keys in.
fn is_open(tx: &impl Tx, member: &Membership) -> Result<bool> {
    let organization = tx.head::<Organization>(&member.organization)?;
    Ok(organization.is_some_and(|organization| lets_keys_in(&organization, member)))
}

/// The key of a request, and what it is limited to.
#[derive(Debug)]
pub struct Limits {
    /// The key.
    pub id: ApiKeyId,
    /// What the presented secret holds of it.
    pub holdings: Holdings,
}

impl Limits {
    /// The organizations that lists may show, where the key is limited to some.
    pub fn only_organizations(&self) -> Option<&[OrganizationId]> {
        let only = self.holdings.organizations.as_slice();
        (!only.is_empty()).then_some(only)
    }

    /// The projects that lists may show, where the key is limited to some.
    pub fn only_projects(&self) -> Option<&[ProjectId]> {
        let only = self.holdings.projects.as_slice();
        (!only.is_empty()).then_some(only)
    }

    /// Whether the key may do what needs `scope`, besides what the route asked for.
    pub fn allows(&self, scope: &str) -> bool {
        self.holdings.scopes.allow(scope)
    }

    /// Whether the key shows this project, as far as its limits go.
    pub fn reach_project(&self, id: ProjectId) -> bool {
        self.only_projects().is_none_or(|only| only.contains(&id))
    }
}

/// Whom the gate let in, and where.
pub struct Granted {
    /// Who is asking.
    pub caller: Caller,
    /// The caller's membership of the organization that the path leads into.
    pub member: Option<Membership>,
    /// The project that the path names.
    pub project: Option<projects::Head>,
}

impl Granted {
    /// The tenant that the request works for.
    pub fn consumer(&self) -> Consumer {
        match &self.member {
            Some(member) => Consumer::Organization(member.organization.0),
            None => Consumer::User(self.caller.user.id.0),
        }
    }
}

/// Lets the caller in, or says why not.
///
/// # Errors
/// 401, 404 and 403 in the order of decisions §1.
pub fn authorize(tx: &impl Tx, ask: &Ask, now: Timestamp) -> Result<Granted> {
    let key = live_key(tx, &ask.presented, now)?;
    let user = active_user(tx, key.user)?;
    let found = find(tx, ask, &user, &key.projects)?;
    require_reach(&key, ask.target, &found, &ask.ids)?;
    if let Some(what) = ask.needs.unlimited {
        require_unlimited(&key, what)?;
    }
    if let Some(scope) = ask.needs.scope
        && !key.scopes.allow(scope)
    {
        return Err(Error::missing_scope(scope));
    }
    let Found { organization, project } = found;
    let member = match &organization {
        Some(organization) => {
            Some(require_membership(tx, ask.target, organization, project.as_ref(), &user)?)
        }
        None => None,
    };
    if member.as_ref().is_some_and(|member| member.level < ask.needs.level) {
        return Err(Error::denied("Your organization access level is insufficient."));
    }
    if let (true, Some(member)) = (ask.needs.inviting, &member) {
        require_may_invite(tx, member)?;
    }
    let key = Arc::new(Limits { id: key.id, holdings: Holdings::of(key) });
    Ok(Granted { caller: Caller { user, key }, member, project })
}

/// The stored key, if the secret that was found right is still its own, or was until a roll and is in its grace,
/// and has not ended. A secret in its grace holds the key only until that ends.
fn live_key(tx: &impl Tx, presented: &Match, now: Timestamp) -> Result<api_keys::Head> {
    let key = tx.head::<ApiKey>(&presented.key())?.ok_or_else(Error::authentication_failed)?;
    let key = api_keys::held_by(tx, key, presented.hash())?;
    key.filter(|key| !key.has_ended(now)).ok_or_else(Error::authentication_failed)
}

fn active_user(tx: &impl Tx, id: UserId) -> Result<users::Head> {
    tx.head::<User>(&id)?.filter(|user| user.is_active).ok_or_else(Error::authentication_failed)
}

/// What the path's ids lead to.
struct Found {
    organization: Option<organizations::Head>,
    project: Option<projects::Head>,
}

fn find(tx: &impl Tx, ask: &Ask, user: &users::Head, only: &[ProjectId]) -> Result<Found> {
    let PathIds { organization, project } = &ask.ids;
    match (organization, project) {
        (None, None) => Ok(Found { organization: None, project: None }),
        (Some(id), None) => {
            Ok(Found { organization: Some(find_organization(tx, id, user)?), project: None })
        }
        // Whether the organization has such a project is said only to its members.
        (Some(id), Some(project)) => {
            let organization = find_organization(tx, id, user)?;
            let project = find_project(tx, project, user, only)?;
            let project = project.filter(|project| project.organization == organization.id);
            Ok(Found { organization: Some(organization), project })
        }
        (None, Some(id)) => {
            let missing = || match ask.target {
                Target::Project => Error::not_found(),
                _ => Error::not_found_as("Project not found."),
            };
            let project = find_project(tx, id, user, only)?.ok_or_else(missing)?;
            let organization = tx.head::<Organization>(&project.organization)?;
            let organization = Some(organization.ok_or_else(missing)?);
            Ok(Found { organization, project: Some(project) })
        }
    }
}

fn find_organization(tx: &impl Tx, id: &str, user: &users::Head) -> Result<organizations::Head> {
    let id = match id {
        "@current" => members::current_organization(tx, user)?,
        id => id.parse().ok(),
    };
    let found = match id {
        Some(id) => tx.head::<Organization>(&id)?,
        None => None,
    };
    found.ok_or_else(|| Error::not_found_as("Organization not found."))
}

fn find_project(
    tx: &impl Tx,
    id: &str,
    user: &users::Head,
    only: &[ProjectId],
) -> Result<Option<projects::Head>> {
    match id {
        "@current" => current_project(tx, user, only),
        id => match id.parse() {
            Ok(id) => projects::find_by_id(tx, id),
            Err(_) => Ok(None),
        },
    }
}

/// What `@current` stands for as a project.
fn current_project(
    tx: &impl Tx,
    user: &users::Head,
    only: &[ProjectId],
) -> Result<Option<projects::Head>> {
    let member = match members::current_organization(tx, user)? {
        Some(organization) => members::find(tx, organization, user.id)?,
        None => None,
    };
    let only = (!only.is_empty()).then_some(only);
    projects::current_project(tx, user, member.as_ref(), only)
}

/// The key's own restrictions. A refusal repeats an id only if the path named it: what `@current` or a project's
/// number leads to is not for the key to know.
fn require_reach(key: &api_keys::Head, target: Target, found: &Found, ids: &PathIds) -> Result<()> {
    if !key.projects.is_empty() {
        match (target, &found.project) {
            (Target::Caller, _) => {}
            (Target::Organizations | Target::Organization, _)
            | (Target::OrganizationProject, None) => {
                return Err(Error::denied(
                    "API keys with scoped projects are only supported on project-based endpoints.",
                ));
            }
            (_, Some(project)) if key.projects.contains(&project.id) => {}
            _ => return Err(beyond_reach("project", ids.project.as_deref())),
        }
    }
    match &found.organization {
        Some(organization)
            if !key.organizations.is_empty() && !key.organizations.contains(&organization.id) =>
        {
            Err(match &ids.organization {
                Some(id) => beyond_reach("organization", Some(id)),
                None => beyond_reach("project", ids.project.as_deref()),
            })
        }
        _ => Ok(()),
    }
}

fn beyond_reach(what: &str, sent: Option<&str>) -> Error {
    let id = sent.filter(|id| *id != "@current").map_or(String::new(), |id| format!(": ID {id}"));
    Error::denied(format!("API key does not have access to the requested {what}{id}."))
}

fn require_unlimited(key: &api_keys::Head, what: &str) -> Result<()> {
    if key.organizations.is_empty() && key.projects.is_empty() {
        return Ok(());
    }
    let who = "API keys limited to organizations or projects";
    Err(Error::denied(format!("{who} cannot {what}.")))
}

/// Whether the organization lets the member's keys in: it may keep out those of plain members.
fn lets_keys_in(organization: &organizations::Head, member: &Membership) -> bool {
    organization.members_can_use_personal_api_keys || member.level.administers()
}

/// Lets admins invite, and plain members where the organization does (facts-org §3.2).
fn require_may_invite(tx: &impl Tx, member: &Membership) -> Result<()> {
    if member.level.administers()
        || tx.get::<Organization>(&member.organization)?.shown.members_can_invite
    {
        return Ok(());
    }
    Err(Error::denied("You do not have permission to perform this action."))
}

/// The caller's membership, in the words of the target: a project that the caller may not see is absent
/// where it is asked for itself, and refused where something in it is.
fn require_membership(
    tx: &impl Tx,
    target: Target,
    organization: &organizations::Head,
    project: Option<&projects::Head>,
    user: &users::Head,
) -> Result<Membership> {
    let member = members::find(tx, organization.id, user.id)?.ok_or_else(|| match target {
        Target::Project => Error::not_found(),
        Target::InProject => Error::denied("You don't have access to the project."),
        _ => Error::denied("You do not have permission to perform this action."),
    })?;
    if !lets_keys_in(organization, &member) {
        let name = tx.get::<Organization>(&organization.id)?.shown.name;
        return Err(Error::denied(format!(
            "Organization '{name}' does not allow using personal API keys. Contact an admin to enable personal API keys for this organization."
        )));
    }
    match (target, project) {
        (Target::OrganizationProject, None) => Err(Error::not_found()),
        (_, Some(project)) if !projects::is_visible(tx, &member, project)? => Err(match target {
            Target::InProject => Error::denied("You don't have access to the project."),
            _ => Error::not_found(),
        }),
        _ => Ok(member),
    }
}
