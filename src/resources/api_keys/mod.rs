//! Personal API keys: what a program presents to act for a user (decisions §2).
//!
//! A key is stored as the Argon2id hash of its secret, never itself. Its text is made and checked in
//! [`access::key`](crate::access::key).

pub mod body;
mod holdings;
pub mod http;
mod input;
mod issuing;
mod makers;
mod rolls;
mod scopes;
mod verifiers;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId};
use crate::input::{Kind, Name};
use crate::resources::users::User;
use crate::store::{Index, Indexed, Owner, Record, Reference, Table, Tx, WriteTx};
use crate::time::Timestamp;

pub use body::{body, body_with, list};
pub use holdings::{Excess, Holdings};
pub use input::{PersonalApiKeyFields, PersonalApiKeyPatch, RollFields};
pub use issuing::{get_own, issue, require_issuable, revoke, update};
pub use makers::Makers;
pub use rolls::{require_rollable, roll};
pub use scopes::{Scopes, is_scope};
pub use verifiers::{Candidate, SecretDigest, Verifiers, find_candidate, held_by, record_digest};

/// A personal API key.
#[derive(Clone, PartialEq)]
pub struct ApiKey {
    /// What every request decides by.
    pub head: Head,
    /// What listings show.
    pub shown: Shown,
}

/// What every request decides by.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The key's public id.
    pub id: ApiKeyId,
    /// Whose key it is.
    pub user: UserId,
    /// The Argon2id hash of its secret, as a PHC string.
    pub hash: String,
    /// What it may do.
    pub scopes: Scopes,
    /// The organizations it is limited to; empty for no limit.
    pub organizations: Vec<OrganizationId>,
    /// The projects it is limited to; empty for no limit.
    pub projects: Vec<ProjectId>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

impl Head {
    /// Whether the key has ended by itself.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// What listings show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// What its maker calls it.
    pub label: String,
    /// Its first four characters, `...`, its last four.
    pub mask_value: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its secret was last replaced.
    pub last_rolled_at: Option<Timestamp>,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey").field("id", &self.head.id).finish_non_exhaustive()
    }
}

/// The keys of a user, oldest first.
pub const BY_USER: Index<ApiKey, UserId> =
    Index::many(Table::ApiKeysByUser, |key| Some(key.head.user));

impl Record for ApiKey {
    const TABLE: Table = Table::ApiKeys;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_USER];
    type Key = ApiKeyId;
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> ApiKeyId {
        self.head.id
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(None)
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<User>(&self.head.user)]
    }
}

/// When a key was last used. Kept apart, because it changes without the key changing.
#[derive(Serialize, Deserialize)]
pub struct ApiKeyUse {
    /// The key.
    pub key: ApiKeyId,
    /// The moment, at most an hour old while the key is in use.
    pub last_used_at: Timestamp,
}

impl Record for ApiKeyUse {
    const TABLE: Table = Table::ApiKeyUses;
    type Key = ApiKeyId;
    type Head = Self;
    type Shown = ();

    fn key(&self) -> ApiKeyId {
        self.key
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(None)
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<ApiKey>(&self.key)]
    }
}

/// A key to make. Its text was made, and its secret hashed, before the write began.
#[derive(Clone)]
pub struct NewApiKey {
    /// Whose key it is.
    pub user: UserId,
    /// What its maker calls it.
    pub label: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// The organizations it is limited to; empty for no limit.
    pub organizations: Vec<OrganizationId>,
    /// The projects it is limited to; empty for no limit.
    pub projects: Vec<ProjectId>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// Its public id.
    pub id: ApiKeyId,
    /// Its secret.
    pub secret: NewSecret,
}

/// A new secret of a key, as it is kept. No Debug.
#[derive(Clone)]
pub struct NewSecret {
    /// The mask of the key that has it.
    pub mask_value: String,
    /// Its Argon2id hash, as a PHC string.
    pub hash: String,
    /// What it is verified by, and told from the key's other secrets.
    pub digest: SecretDigest,
}

/// Makes a key, for whoever may give it anything: the operator, or nobody in particular.
///
/// # Errors
/// 400 at `label`, `scopes`, `scoped_organizations` or `scoped_teams`; 404 when the user is gone.
pub fn create(tx: &mut WriteTx<'_>, new: NewApiKey, now: Timestamp) -> Result<()> {
    let NewApiKey { user, label, scopes, organizations, projects, expires_at, id, secret } = new;
    let label = Name::<40>::read(&label.into()).map_err(|error| error.within("label"))?;
    let scopes = Scopes::new(scopes).map_err(|error| error.within("scopes"))?;
    issuing::require_organizations(tx, user, &organizations)?;
    issuing::require_teams(tx, user, &projects)?;
    let holdings = Holdings { user, scopes, organizations, projects, expires_at };
    issuing::put_new(tx, id, label, holdings, secret, now)
}

/// Ends a key, with all of its secrets. What it was used for ends with it, at once.
///
/// # Errors
/// 404 when there is none.
pub fn remove(tx: &mut WriteTx<'_>, id: ApiKeyId) -> Result<()> {
    tx.remove::<ApiKey>(&id)?.ok_or_else(Error::not_found)?;
    tx.remove::<ApiKeyUse>(&id)?;
    tx.remove::<Verifiers>(&id)?;
    tx.remove::<Makers>(&id)?;
    Ok(())
}

/// Ends all keys of a user.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn remove_all(tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
    for id in tx.keys(&BY_USER, &user, usize::MAX)? {
        remove(tx, id)?;
    }
    Ok(())
}

/// How long the record of a key's last use stays as it is, in seconds.
pub const USE_RECORDED_EVERY: i64 = 3600;

/// When a key was last used, as far as recorded.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn last_used_at(tx: &impl Tx, id: ApiKeyId) -> Result<Option<Timestamp>> {
    Ok(tx.head::<ApiKeyUse>(&id)?.map(|used| used.last_used_at))
}

/// Records that a key was used, unless that was recorded within the hour or the key is gone.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn record_use(tx: &mut WriteTx<'_>, id: ApiKeyId, now: Timestamp) -> Result<()> {
    let recent =
        last_used_at(tx, id)?.is_some_and(|moment| now < moment.plus_seconds(USE_RECORDED_EVERY));
    if recent || !tx.exists::<ApiKey>(&id)? {
        return Ok(());
    }
    tx.put(&ApiKeyUse { key: id, last_used_at: now })
}
