//! The result of an authorization, and a cache of results.
//!
//! A result stays valid while the records that it was computed from are unchanged, which the version of their tables
//! tells ([`AccessVersion`]). So a revoked key or a removed member is refused by the first request after the change.

use std::hash::BuildHasher;
use std::sync::Arc;

use quick_cache::DefaultHashBuilder;
use quick_cache::sync::Cache;

use crate::base::error::Result;
use crate::base::time::Timestamp;
use crate::store::{AccessTables, AccessVersion};

use super::authorize::{AuthContext, AuthRequest, PathIds, authorize};
use super::caller::Credential;
use super::requirements::{PathTarget, Requirements};

/// The capacity of the cache, in results. One takes about a kilobyte.
const MAX_CACHED: usize = 4096;
/// The longest id in a path, in bytes, of a cached result. Clients may spell a number in many ways.
const MAX_CACHED_ID: usize = 64;

/// A request that was authorized, with the result.
pub struct Authorization {
    request: AuthRequest,
    context: Arc<AuthContext>,
    /// The version of the data that the result was computed from. `None` if the result must not be used again.
    version: Option<u64>,
    /// When it was computed.
    at: Timestamp,
}

impl Authorization {
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

    /// Whether this is the result of a request with this key.
    fn is_of(
        &self,
        credential: &Credential,
        route: (Requirements, PathTarget),
        (organization, project): (Option<&str>, Option<&str>),
    ) -> bool {
        let AuthRequest { credential: known, requirements, target, ids } = &self.request;
        matches!((known, credential), (Credential::Key(known), Credential::Key(key)) if known == key)
            && (*requirements, *target) == route
            && ids.organization.as_deref() == organization
            && ids.project.as_deref() == project
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

/// A cache of the results of requests with API keys, by a hash of the request.
pub struct AuthorizationCache {
    hasher: DefaultHashBuilder,
    known: Cache<u64, Arc<Authorization>>,
}

impl AuthorizationCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self { hasher: DefaultHashBuilder::default(), known: Cache::new(MAX_CACHED) }
    }

    /// Authorizes a request in `tx`. Returns an earlier result if the check would return the same.
    ///
    /// # Errors
    /// As [`authorize`].
    pub fn authorize(
        &self,
        tx: &impl AccessVersion,
        credential: Credential,
        route: (Requirements, PathTarget),
        ids: (Option<&str>, Option<&str>),
        now: Timestamp,
    ) -> Result<Arc<Authorization>> {
        let is_short = |id: Option<&str>| id.is_none_or(|id| id.len() <= MAX_CACHED_ID);
        let hash = match &credential {
            Credential::Key(key) if is_short(ids.0) && is_short(ids.1) => {
                Some(self.hasher.hash_one((key.key(), route, ids)))
            }
            _ => None,
        };
        if let Some(known) = hash.and_then(|hash| self.known.get(&hash))
            && known.is_of(&credential, route, ids)
            && known.is_valid(tx, now)
        {
            return Ok(known);
        }
        let (requirements, target) = route;
        let [organization, project] = [ids.0, ids.1].map(|id| id.map(str::to_owned));
        let ids = PathIds { organization, project };
        let request = AuthRequest { credential, requirements, target, ids };
        let (context, version) = match &request.credential {
            Credential::Key(_) => {
                (authorize(&AccessTables(tx), &request, now)?, tx.access_version())
            }
            // A session expires by its use, which other tables record.
            Credential::Session(_) => (authorize(tx, &request, now)?, None),
        };
        let context = Arc::new(context);
        let authorized = Arc::new(Authorization { request, context, version, at: now });
        if let Some(hash) = hash {
            self.known.insert(hash, Arc::clone(&authorized));
        }
        Ok(authorized)
    }
}
