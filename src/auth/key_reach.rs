//! What a key can do: the decision of the authorization for each route, at every tenant that the key reaches.

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId};
use crate::resources::api_keys::KeyPermissions;
use crate::resources::{members, projects};
use crate::store::{Order, Raw, Window};

use super::authorize::{PathIds, admit};
use super::caller::{Caller, CallerKey};
use super::requirements::{PathTarget, Requirements};

/// A tenant in the path of a request, with its organization.
struct Candidate {
    ids: PathIds,
    organization: Option<OrganizationId>,
}

/// Decides which routes a key could use: an existing key, or one that its caller could create.
pub struct KeyReach<'c> {
    /// The caller of the request, with this key or another one.
    requester: &'c Caller,
    /// The caller that the key authenticates.
    caller: Caller,
    is_expired: bool,
    organizations: Vec<Candidate>,
    /// One project of each organization, because requirements do not differ within an organization; or each project that
    /// the key names.
    projects: Vec<Candidate>,
    /// Decisions so far. Most routes have the requirements of another one.
    known: Vec<((Requirements, PathTarget), Option<Error>)>,
}

impl<'c> KeyReach<'c> {
    /// Finds the tenants that a key of the caller's user with these permissions reaches.
    pub fn of(
        tx: &dyn Raw,
        requester: &'c Caller,
        (id, permissions): (ApiKeyId, KeyPermissions),
        now: Timestamp,
    ) -> Result<Self> {
        let mut reached = permissions.organizations.clone();
        let mut named = Vec::new();
        for id in &permissions.projects {
            let project = projects::find_by_id(tx, *id)?;
            named.push((project.map(|project| project.organization), *id));
        }
        if reached.is_empty() {
            reached = if named.is_empty() {
                let memberships = members::organizations_of(tx, requester.user.id)?;
                memberships.iter().map(|member| member.organization).collect()
            } else {
                named.iter().filter_map(|(organization, _)| *organization).collect()
            };
            reached.sort_unstable();
            reached.dedup();
        }
        if named.is_empty() {
            for organization in &reached {
                let project = first_project(tx, requester, *organization)?;
                named.extend(project.map(|project| (Some(*organization), project)));
            }
        }
        let is_expired = permissions.is_expired(now);
        let key = Arc::new(CallerKey { id: Some(id), session: None, permissions });
        Ok(Self {
            requester,
            caller: Caller { user: requester.user.clone(), key },
            is_expired,
            organizations: reached.into_iter().map(Candidate::organization).collect(),
            projects: named.into_iter().map(Candidate::project).collect(),
            known: Vec::new(),
        })
    }

    /// Returns why the key could not use the route, or `None` if it could for at least one tenant.
    pub fn refusal(
        &mut self,
        tx: &dyn Raw,
        route: (Requirements, PathTarget),
    ) -> Result<Option<Error>> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == route) {
            return Ok(known.clone());
        }
        let decided = self.decide(tx, route)?;
        self.known.push((route, decided.clone()));
        Ok(decided)
    }

    fn decide(
        &self,
        tx: &dyn Raw,
        (requirements, target): (Requirements, PathTarget),
    ) -> Result<Option<Error>> {
        if self.is_expired {
            return Ok(Some(Error::authentication_failed()));
        }
        let (candidates, current) = match target {
            PathTarget::Caller | PathTarget::Organizations => {
                (&[][..], Candidate::current(false, false))
            }
            PathTarget::Organization => (&*self.organizations, Candidate::current(true, false)),
            PathTarget::OrganizationProject => (&*self.projects, Candidate::current(true, true)),
            PathTarget::Project | PathTarget::InProject => {
                (&*self.projects, Candidate::current(false, true))
            }
        };
        let candidates = if candidates.is_empty() { &[current][..] } else { candidates };
        let mut first = None;
        for candidate in candidates {
            let refusal = self.refusal_at(tx, (requirements, target), candidate)?;
            if refusal.is_none() {
                return Ok(None);
            }
            first = first.or(refusal);
        }
        Ok(first)
    }

    /// Returns why the key could not use the route for this tenant.
    fn refusal_at(
        &self,
        tx: &dyn Raw,
        (requirements, target): (Requirements, PathTarget),
        Candidate { ids, organization }: &Candidate,
    ) -> Result<Option<Error>> {
        let mut ids = ids.clone();
        if matches!(target, PathTarget::Project | PathTarget::InProject) {
            ids.organization = None;
        }
        let error = match admit(tx, self.caller.clone(), (requirements, target), &ids) {
            Ok(_) => return Ok(None),
            Err(error) if error.status() >= 500 => return Err(error),
            Err(error) => error,
        };
        match organization {
            // The error may contain the name of the organization.
            Some(id) if !self.requester.may_name(tx, *id)? => {
                let anywhere = (requirements, PathTarget::Caller);
                let without = admit(tx, self.caller.clone(), anywhere, &PathIds::default());
                let hidden = "You do not have permission to perform this action.";
                Ok(Some(without.err().unwrap_or_else(|| Error::denied(hidden))))
            }
            _ => Ok(Some(error)),
        }
    }
}

impl Candidate {
    /// What `@current` names, for a key that reaches no tenant: the authorization then says what is missing.
    fn current(organization: bool, project: bool) -> Self {
        let current = |named: bool| named.then(|| "@current".to_owned());
        let ids = PathIds { organization: current(organization), project: current(project) };
        Self { ids, organization: None }
    }

    fn organization(id: OrganizationId) -> Self {
        let ids = PathIds { organization: Some(id.to_string()), project: None };
        Self { ids, organization: Some(id) }
    }

    fn project((organization, project): (Option<OrganizationId>, ProjectId)) -> Self {
        let ids = PathIds {
            organization: organization.map(|id| id.to_string()),
            project: Some(project.to_string()),
        };
        Self { ids, organization }
    }
}

/// Returns a project of the organization that the user may see.
fn first_project(
    tx: &dyn Raw,
    requester: &Caller,
    organization: OrganizationId,
) -> Result<Option<ProjectId>> {
    let Some(member) = members::find(tx, organization, requester.user.id)? else { return Ok(None) };
    let mut first = None;
    let window = Window { offset: 0, limit: 1, order: Order::Ascending };
    projects::list(tx, &member, None, window, &mut |id, _| {
        first = Some(id);
        Ok(())
    })?;
    Ok(first)
}
