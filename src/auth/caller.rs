//! The caller of a request, with the permissions of its key or session.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, SessionId};
use crate::resources::api_keys::{ApiKey, KeyPermissions};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::{self, Organization};
use crate::resources::projects::{self, NameVisibility};
use crate::resources::sessions::{self, LiveSession, VerifiedSession};
use crate::resources::users;
use crate::store::{Raw, Tx, WriteTx, continue_if};

use super::key_cache::VerifiedKey;

/// The authenticated caller of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub user: users::Meta,
    /// The caller's key or session, with its permissions.
    pub key: Arc<CallerKey>,
}

impl Caller {
    /// Returns the organizations that the key is restricted to, directly or by their projects, or `None` for an
    /// unrestricted key.
    fn scoped_organizations(&self, tx: &dyn Raw) -> Result<Option<BTreeSet<OrganizationId>>> {
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
    /// key's restrictions must include it, and it must allow the caller to use API keys, if the caller uses one.
    pub fn open_membership(
        &self,
        tx: &dyn Raw,
        organization: OrganizationId,
    ) -> Result<Option<Membership>> {
        if !self.may_name(tx, organization)? {
            return Ok(None);
        }
        match members::find(tx, organization, self.user.id)? {
            Some(member) if self.is_accepted(tx, &member)? => Ok(Some(member)),
            _ => Ok(None),
        }
    }

    /// Returns whether the key's restrictions include the organization.
    pub(super) fn may_name(&self, tx: &dyn Raw, organization: OrganizationId) -> Result<bool> {
        let named = self.scoped_organizations(tx)?;
        Ok(named.is_none_or(|named| named.contains(&organization)))
    }

    /// Returns at most `limit` memberships of such organizations, the oldest first.
    pub fn open_memberships(&self, tx: &dyn Raw, limit: usize) -> Result<Vec<Membership>> {
        let mut open = Vec::new();
        let Some(named) = self.scoped_organizations(tx)? else {
            tx.walk_from(&members::BY_USER, &self.user.id, &self.user.id, |row| {
                if open.len() < limit && self.is_accepted(tx, &row.meta)? {
                    open.push(row.meta);
                }
                Ok(continue_if(open.len() < limit))
            })?;
            return Ok(open);
        };
        for organization in named {
            if open.len() < limit
                && let Some(member) = members::find(tx, organization, self.user.id)?
                && self.is_accepted(tx, &member)?
            {
                open.push(member);
            }
        }
        Ok(open)
    }

    /// Returns whether the member's organization exists and allows the member to use what the caller uses.
    fn is_accepted(&self, tx: &dyn Raw, member: &Membership) -> Result<bool> {
        let organization = tx.meta::<Organization>(&member.organization)?;
        Ok(organization.is_some_and(|organization| self.key.is_allowed_in(&organization, member)))
    }
}

/// The key or the session of a request, with its permissions.
#[derive(Debug)]
pub struct CallerKey {
    /// The public id of the key, or of the key that the session is bound to. `None` for a session that a link created.
    pub id: Option<ApiKeyId>,
    /// The public id of the session, if the request was made in one.
    pub session: Option<SessionId>,
    /// The permissions of the secret that the caller sent, or of the session. A session that a link created has all
    /// permissions of its user.
    pub permissions: KeyPermissions,
}

impl CallerKey {
    /// Reads the key or the session of a credential, with its present permissions.
    ///
    /// # Errors
    /// 401 if it is no longer valid.
    pub(super) fn find(tx: &dyn Raw, credential: &Credential, now: Timestamp) -> Result<Self> {
        match credential {
            Credential::Key(presented) => {
                // A rotated secret stays valid during its grace period.
                let key = tx.meta::<ApiKey>(&presented.key())?.filter(|key| !key.is_expired(now));
                let key = key.and_then(|key| key.for_secret(presented.hash(), now));
                let key = key.ok_or_else(Error::authentication_failed)?;
                Ok(Self { id: Some(key.id), session: None, permissions: KeyPermissions::of(key) })
            }
            Credential::Session(presented) => {
                let LiveSession { session, key } = sessions::get_live(tx, presented, now)?;
                let id = key.as_ref().map(|key| key.id);
                let permissions = match key {
                    Some(key) => KeyPermissions::of(key),
                    None => KeyPermissions::all_of(session.user)?,
                };
                Ok(Self { id, session: Some(session.id), permissions })
            }
        }
    }

    /// Returns whether the member may use the key in the organization, which can forbid API keys to plain members. A
    /// session that a link created uses no key.
    pub(super) fn is_allowed_in(
        &self,
        organization: &organizations::Meta,
        member: &Membership,
    ) -> bool {
        self.id.is_none()
            || organization.members_can_use_personal_api_keys
            || member.level.is_admin()
    }

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

    /// Returns what responses may name. A key that is limited to projects lists neither members nor roles.
    pub fn name_visibility(&self) -> NameVisibility {
        let may = |scope| self.scoped_projects().is_none() && self.has_scope(scope);
        let (other_members, roles) = (may("organization_member:read"), may("organization:read"));
        NameVisibility { other_members, roles }
    }

    /// Returns whether the key's restrictions include the project.
    pub fn reaches_project(&self, id: ProjectId) -> bool {
        self.scoped_projects().is_none_or(|only| only.contains(&id))
    }
}

/// A verified credential. Not `Debug`, so that logs cannot contain it.
#[derive(Clone)]
pub enum Credential {
    /// An API key, from the `Authorization` header.
    Key(VerifiedKey),
    /// A console session, from a request extension.
    Session(VerifiedSession),
}

impl Credential {
    /// Returns whether a use is due to be recorded.
    pub fn is_use_due(&self, now: Timestamp) -> bool {
        match self {
            Self::Key(key) => key.is_use_due(now),
            Self::Session(session) => session.is_use_due(),
        }
    }

    /// Records a use.
    pub fn record_use(&self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        match self {
            Self::Key(key) => key.record_use(tx, now),
            Self::Session(session) => session.record_use(tx, now),
        }
    }
}
