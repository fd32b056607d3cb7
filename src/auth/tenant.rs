//! The tenant of a route, and the caller of a public route.

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::exchange::dry_run::DryRun;
use crate::exchange::idempotency::IdempotencyRequest;
use crate::fair::fair_queue::Consumer;
use crate::resources::members::Membership;
use crate::resources::projects;

use super::authorization::Authorization;
use super::authorize::AuthContext;
use super::caller::Caller;

/// The tenant of a route, as a type. A handler that has a value of it has a caller with access to that tenant.
pub trait Tenant: Clone + Send + Sync + Sized + 'static {
    /// Returns the tenant of a successful check.
    ///
    /// # Errors
    /// 500 if the route's path does not name such a tenant, which is a bug in the route table.
    fn of(granted: &AuthContext) -> Result<Self>;
}

/// No organization or project.
#[derive(Debug, Clone, Copy)]
pub struct Global;

impl Tenant for Global {
    fn of(_: &AuthContext) -> Result<Self> {
        Ok(Self)
    }
}

/// An organization that the caller belongs to.
#[derive(Debug, Clone)]
pub struct InOrganization {
    /// The caller's membership of the organization.
    pub member: Membership,
}

impl Tenant for InOrganization {
    fn of(context: &AuthContext) -> Result<Self> {
        let member = context.member.clone();
        Ok(Self {
            member: member.ok_or_else(|| Error::internal("the path names no organization"))?,
        })
    }
}

/// A project that the caller may see.
#[derive(Debug, Clone)]
pub struct InProject {
    /// The caller's membership of the project's organization.
    pub member: Membership,
    /// The project.
    pub project: projects::Meta,
}

impl Tenant for InProject {
    fn of(context: &AuthContext) -> Result<Self> {
        let InOrganization { member } = InOrganization::of(context)?;
        let project = context.project.clone();
        let project = project.ok_or_else(|| Error::internal("the path names no project"))?;
        Ok(Self { member, project })
    }
}

/// The caller of a public route, with or without a key.
pub struct PublicAccess {
    /// The check, to repeat it inside a write; `None` without a key.
    pub auth: Option<Arc<Authorization>>,
    /// The authenticated caller, if the request has a key.
    pub caller: Option<Caller>,
    /// The idempotent request. The caller counts as a part of its body.
    pub idempotency: Option<IdempotencyRequest>,
    /// Set if the request asks for a dry run.
    pub dry_run: Option<DryRun>,
    /// The tenant that the request counts towards: the key's, or the client's address without a key.
    pub consumer: Consumer,
}
