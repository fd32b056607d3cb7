//! The result of an authorization, and a cache of results.
//!
//! A result stays valid while the records that it was computed from are unchanged, which the version of their tables
//! tells ([`AccessVersion`]). So a revoked key or a removed member is refused by the first request after the change.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quick_cache::Equivalent;
use quick_cache::sync::Cache;

use crate::base::error::Result;
use crate::base::time::Timestamp;
use crate::store::{AccessTables, AccessVersion};

use super::authorize::{AuthContext, AuthRequest, PathIds, authorize};
use super::caller::Credential;
use super::key_cache::VerifiedKey;
use super::requirements::{PathTarget, Requirements};

/// The capacity of the cache, in results. One takes about a kilobyte.
const MAX_CACHED: usize = 4096;
/// The longest id in a path, in bytes, of a cached result. Clients may spell a number in many ways.
const MAX_CACHED_ID: usize = 64;

/// A request that was authorized, with the result.
pub struct Authorization {
    request: Arc<AuthRequest>,
    context: Arc<AuthContext>,
    /// The version of the data that the result was computed from. `None` if the result must not be used again.
    version: Option<u64>,
    /// When it was computed.
    at: Timestamp,
}

impl Authorization {
    /// Authorizes a request in `tx`.
    ///
    /// # Errors
    /// As [`authorize`].
    pub fn of(tx: &impl AccessVersion, request: AuthRequest, now: Timestamp) -> Result<Self> {
        let request = Arc::new(request);
        let (context, version) = match &request.credential {
            Credential::Key(_) => {
                (authorize(&AccessTables(tx), &request, now)?, tx.access_version())
            }
            // A session expires by its use, which other tables record.
            Credential::Session(_) => (authorize(tx, &request, now)?, None),
        };
        Ok(Self { request, context: Arc::new(context), version, at: now })
    }

    /// Returns the result of the check.
    pub fn context(&self) -> &Arc<AuthContext> {
        &self.context
    }

    /// Returns the credential of the request.
    pub fn credential(&self) -> &Credential {
        &self.request.credential
    }

    /// Authorizes the request again, in `tx`. Returns the earlier result if the check would return the same.
    ///
    /// # Errors
    /// As [`authorize`].
    pub fn renew(&self, tx: &impl AccessVersion, now: Timestamp) -> Result<Arc<AuthContext>> {
        if self.is_valid(tx, now) {
            return Ok(Arc::clone(&self.context));
        }
        authorize(tx, &self.request, now).map(Arc::new)
    }

    /// Whether the check would return the same result in `tx`. Time changes the result only when the key expires, and when
    /// the clock is set back.
    fn is_valid(&self, tx: &impl AccessVersion, now: Timestamp) -> bool {
        self.version.is_some()
            && self.version == tx.access_version()
            && self.at <= now
            && !self.context.caller.key.permissions.is_expired(now)
    }
}

/// A cache of the results of requests with API keys.
pub struct AuthorizationCache(Cache<CachedRequest, Arc<Authorization>>);

impl AuthorizationCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self(Cache::new(MAX_CACHED))
    }

    /// Authorizes a request in `tx`. Returns an earlier result if the check would return the same.
    ///
    /// # Errors
    /// As [`authorize`].
    pub fn authorize(
        &self,
        tx: &impl AccessVersion,
        credential: Credential,
        (requirements, target): (Requirements, PathTarget),
        (organization, project): (Option<&str>, Option<&str>),
        now: Timestamp,
    ) -> Result<Arc<Authorization>> {
        let key = match &credential {
            Credential::Key(key) => Some(key.clone()),
            Credential::Session(_) => None,
        };
        let is_short = |id: Option<&str>| id.is_none_or(|id| id.len() <= MAX_CACHED_ID);
        let key = key.filter(|_| is_short(organization) && is_short(project));
        let route = (requirements, target);
        if let Some(key) = &key
            && let Some(known) = self.0.get(&RequestRef { key, route, organization, project })
            && known.is_valid(tx, now)
        {
            return Ok(known);
        }
        let [organization, project] = [organization, project].map(|id| id.map(str::to_owned));
        let ids = PathIds { organization, project };
        let request = AuthRequest { credential, requirements, target, ids };
        let authorized = Arc::new(Authorization::of(tx, request, now)?);
        if let Some(key) = key {
            let cached = CachedRequest { key, request: Arc::clone(&authorized.request) };
            self.0.insert(cached, Arc::clone(&authorized));
        }
        Ok(authorized)
    }
}

/// The key of a cached result.
#[derive(Clone)]
struct CachedRequest {
    key: VerifiedKey,
    request: Arc<AuthRequest>,
}

/// What decides the result of a request besides the stored data and the time.
#[derive(PartialEq)]
struct RequestRef<'r> {
    key: &'r VerifiedKey,
    route: (Requirements, PathTarget),
    organization: Option<&'r str>,
    project: Option<&'r str>,
}

impl CachedRequest {
    fn as_ref(&self) -> RequestRef<'_> {
        let AuthRequest { credential: _, requirements, target, ids } = &*self.request;
        RequestRef {
            key: &self.key,
            route: (*requirements, *target),
            organization: ids.organization.as_deref(),
            project: ids.project.as_deref(),
        }
    }
}

impl Hash for RequestRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (requirements, _) = self.route;
        (self.key.key(), requirements.scope, self.organization, self.project).hash(state);
    }
}

impl Hash for CachedRequest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().hash(state);
    }
}

impl PartialEq for CachedRequest {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for CachedRequest {}

impl Equivalent<CachedRequest> for RequestRef<'_> {
    fn equivalent(&self, cached: &CachedRequest) -> bool {
        *self == cached.as_ref()
    }
}
