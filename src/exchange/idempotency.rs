//! Idempotent requests: the response to a POST with an `Idempotency-Key` is stored for a day and returned again when
//! the request is repeated. See `docs/spec/requests.md`.
//!
//! The response is stored in the same transaction as the change. For a large response, only the id of its object is
//! stored.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::error::{Error, Result};
use crate::base::json::null_members;
use crate::base::time::Timestamp;
use crate::ids::{OrganizationId, ProjectId, RequesterId};
use crate::store::{
    Index, Key, Order, Owner, Raw, Record, RecordType, RecordTypeOf, Redaction, Reference, Table,
    Tx, Window, WriteTx, impl_record,
};

/// The types of records of stored responses. An export without secrets omits them.
pub const RECORD_TYPES: &[&dyn RecordType] = &[
    &RecordTypeOf::<StoredResponse>(Redaction::Whole),
    &RecordTypeOf::<StoredBodyPart>(Redaction::Whole),
    &RecordTypeOf::<StoredObjectRef>(Redaction::Whole),
];

/// How long a response is stored.
const RETENTION: Duration = Duration::from_hours(24);
/// The maximum number of stored responses of one requester. A further one replaces the oldest.
pub const MAX_RESPONSES_PER_REQUESTER: u64 = 10_000;
/// The maximum size of a stored body that shows an object, in bytes. For a larger one, the object's id is stored.
const MAX_STORED_BODY: usize = 64 * 1024;
/// The maximum number of bytes of a body that one record holds.
const BODY_PART_SIZE: usize = 48 * 1024;
/// The maximum number of responses, and of pieces of bodies, that one transaction deletes.
const DELETE_BATCH: usize = 500;
/// Members of responses that are credentials. A stored response and a dry run have null in their place. Those that the
/// service signs (links and tokens) are signed again for a repeated request.
pub const SECRET_MEMBERS: [&str; 5] =
    ["value", "accept_url", "personal_api_key", "access_token", "live_events_token"];

/// A POST with an idempotency key. It holds hashes only, so it reveals nothing of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRequest {
    /// A hash of the idempotency key and of the path without its organization and project.
    request: [u8; 32],
    /// A hash of the body.
    body: [u8; 32],
    /// Whether fields that the body leaves out are taken from the caller's key.
    inherits_key_scope: bool,
}

impl IdempotencyRequest {
    /// Creates the request from its path, idempotency key and body.
    ///
    /// `path` must leave out the organization and the project. Only authorization finds them: a path can name the same
    /// project in several ways, and `@current` means another project for another key.
    pub fn new(path: impl Iterator<Item = impl AsRef<str>>, key: &str, body: &[u8]) -> Self {
        let mut request = blake3::Hasher::new();
        for part in path {
            // With its length before it, so that different paths have different hashes.
            let part = part.as_ref().as_bytes();
            request.update(&part.len().to_be_bytes()).update(part);
        }
        request.update(key.as_bytes());
        let (request, body) = (*request.finalize().as_bytes(), *blake3::hash(body).as_bytes());
        Self { request, body, inherits_key_scope: false }
    }

    /// Marks the request: fields that its body leaves out are taken from the caller's key.
    #[must_use]
    pub fn inheriting_key_scope(self) -> Self {
        Self { inherits_key_scope: true, ..self }
    }

    /// Whether fields that the body leaves out are taken from the caller's key.
    pub const fn inherits_key_scope(&self) -> bool {
        self.inherits_key_scope
    }

    /// Adds `by`, on which the request's meaning depends, to the hash of the body.
    #[must_use]
    pub fn with_context(&self, by: &[u8]) -> Self {
        let mut body = blake3::Hasher::new();
        body.update(&self.body).update(by);
        Self { body: *body.finalize().as_bytes(), ..self.clone() }
    }

    /// Binds the request to its requester, and to the organization and project of its path.
    pub fn to_key(
        &self,
        requester: RequesterId,
        organization: Option<OrganizationId>,
        project: Option<ProjectId>,
    ) -> IdempotencyKey {
        let mut request = blake3::Hasher::new();
        request.update(&self.request);
        request.update(organization.map_or(Uuid::nil(), |id| id.0).as_bytes());
        request.update(&project.map_or(0, |id| id.0).to_be_bytes());
        let request = request.finalize().to_hex().to_string();
        IdempotencyKey { requester, organization, request, body: self.body }
    }
}

/// The identity of an idempotent request: its requester, its target and the hash of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    requester: RequesterId,
    organization: Option<OrganizationId>,
    request: String,
    body: [u8; 32],
}

impl IdempotencyKey {
    fn key(&self) -> (RequesterId, String) {
        (self.requester, self.request.clone())
    }
}

/// The response to a request.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotentResponse {
    /// The status, always 2xx.
    pub status: u16,
    /// The version of the object in the response, if it has one.
    pub version: Option<u64>,
    /// The JSON text, or empty if the response has no body.
    pub body: Vec<u8>,
    /// The id of the object in the response. In a stored reply it is set only if the body is not stored.
    pub object: Option<u64>,
}

/// Leaves out the text, which may contain a secret.
impl fmt::Debug for IdempotentResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A stored response. Its body is stored in [`StoredBodyPart`]s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredResponse {
    /// The organization in the request's path, if the path has one.
    organization: Option<OrganizationId>,
    requester: RequesterId,
    request: String,
    body: [u8; 32],
    at: Timestamp,
    status: u16,
    version: Option<u64>,
}

impl StoredResponse {
    /// The tenant whose storage quota the response counts towards.
    fn tenant(&self) -> Owner {
        self.organization.map_or(Owner::Requester(self.requester.0), OrganizationId::owner)
    }
}

/// All responses, the oldest first.
const BY_MOMENT: Index<StoredResponse, Timestamp> =
    Index::many(Table::IdempotencyByMoment, |kept| Some(kept.at));
/// The responses of one requester, the oldest first.
const BY_REQUESTER: Index<StoredResponse, (RequesterId, Timestamp)> =
    Index::many(Table::IdempotencyByRequester, |kept| Some((kept.requester, kept.at)));

impl_record!(StoredResponse {
    table: Idempotency,
    key: |response| -> (RequesterId, String) { (response.requester, response.request.clone()) },
    indexes: [&BY_MOMENT, &BY_REQUESTER],
    counts: [|kept| Some(kept.requester.encoded())],
    owner: |response, _| Ok(Some(response.tenant())),
});

/// A piece of a stored body: bodies are split, because records are small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredBodyPart {
    of: (RequesterId, String),
    place: u64,
    text: Vec<u8>,
}

impl_record!(StoredBodyPart {
    table: IdempotencyParts,
    key: |part| -> ((RequesterId, String), u64) { (part.of.clone(), part.place) },
    owner: |part, tx| Ok(tx.meta::<StoredResponse>(&part.of)?.map(|kept| kept.tenant())),
    references: |part| [Reference::to::<StoredResponse>(&part.of)],
});

/// The id of the object in a stored response whose body is not stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredObjectRef {
    of: (RequesterId, String),
    id: u64,
}

impl_record!(StoredObjectRef {
    table: IdempotencyObjects,
    key: |object| -> (RequesterId, String) { object.of.clone() },
    owner: |object, tx| Ok(tx.meta::<StoredResponse>(&object.of)?.map(|kept| kept.tenant())),
    references: |object| [Reference::to::<StoredResponse>(&object.of)],
});

/// Returns the stored response to this request, if it was sent within the last day.
///
/// # Errors
/// 422 if the request was sent with another body.
pub fn find(
    tx: &dyn Raw,
    once: &IdempotencyKey,
    now: Timestamp,
) -> Result<Option<IdempotentResponse>> {
    let key = once.key();
    let Some(kept) =
        tx.meta::<StoredResponse>(&key)?.filter(|kept| kept.at.is_begin_of_current(RETENTION, now))
    else {
        return Ok(None);
    };
    if kept.body != once.body {
        return Err(Error::idempotency_key_reused());
    }
    let mut body = Vec::new();
    tx.scan::<StoredBodyPart, _>(&key, Window::all(Order::Ascending), |row| {
        body.extend_from_slice(&row.meta.text);
        Ok(())
    })?;
    let object = if body.is_empty() {
        tx.meta::<StoredObjectRef>(&key)?.map(|object| object.id)
    } else {
        None
    };
    Ok(Some(IdempotentResponse { status: kept.status, version: kept.version, body, object }))
}

/// Stores the response to a request, without the values of secret members. If the response shows an object and its
/// body is large or not yet rendered, stores the object's id and not the body.
pub fn store(
    tx: &mut WriteTx<'_>,
    once: &IdempotencyKey,
    reply: &IdempotentResponse,
    now: Timestamp,
) -> Result<()> {
    let key = once.key();
    delete(tx, &key)?;
    if tx.count::<StoredResponse>(&once.requester)? >= MAX_RESPONSES_PER_REQUESTER {
        for oldest in tx.keys(&BY_REQUESTER, &once.requester, 1)? {
            delete(tx, &oldest)?;
        }
    }
    let IdempotencyKey { requester, organization, request, body } = once.clone();
    let IdempotentResponse { status, version, .. } = *reply;
    tx.put(&StoredResponse { organization, requester, request, body, at: now, status, version })?;
    if let Some(id) = reply.object
        && (reply.body.is_empty() || reply.body.len() > MAX_STORED_BODY)
    {
        return tx.put(&StoredObjectRef { of: key, id });
    }
    let mut shown = Vec::with_capacity(reply.body.len());
    null_members(&reply.body, &SECRET_MEMBERS, &mut shown);
    for (place, text) in (0..).zip(shown.chunks(BODY_PART_SIZE)) {
        tx.put(&StoredBodyPart { of: key.clone(), place, text: text.to_vec() })?;
    }
    Ok(())
}

/// Returns whether a stored response has expired.
pub fn has_expired(tx: &dyn Raw, now: Timestamp) -> Result<bool> {
    let mut oldest = tx.keys(&BY_MOMENT, &(), 1)?.into_iter();
    oldest.next().map_or(Ok(false), |key| is_expired(tx, &key, now))
}

/// Deletes expired responses, the oldest first, up to the limit of one transaction.
pub fn delete_expired(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
    let mut parts = 0;
    for key in &tx.keys(&BY_MOMENT, &(), DELETE_BATCH)? {
        if parts >= DELETE_BATCH || !is_expired(tx, key, now)? {
            break;
        }
        parts += delete(tx, key)?;
    }
    Ok(())
}

fn is_expired(tx: &dyn Raw, key: &<StoredResponse as Record>::Key, now: Timestamp) -> Result<bool> {
    Ok(tx.meta::<StoredResponse>(key)?.is_some_and(|kept| now >= kept.at.plus(RETENTION)))
}

/// Returns how many parts were deleted.
fn delete(tx: &mut WriteTx<'_>, key: &<StoredResponse as Record>::Key) -> Result<usize> {
    let parts = tx.remove_some::<StoredBodyPart>(key, usize::MAX)?;
    tx.remove::<StoredObjectRef>(key)?;
    tx.remove::<StoredResponse>(key)?;
    Ok(parts)
}
