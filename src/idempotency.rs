//! Requests that are done once: what a POST with an `Idempotency-Key` was answered is kept for a day, and the
//! same request again is answered so. The answer goes in with the change, in one transaction. Of an answer that is
//! large, only the number of the object that it shows is kept.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId, RequesterId};
use crate::store::{
    Count, Index, Indexed, Key, Order, Owner, Record, Reference, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

/// How long an answer is kept, in seconds: 24 hours.
const KEPT_FOR: i64 = 24 * 60 * 60;
/// How many answers are kept of one requester. The oldest is forgotten for a new one.
pub const KEPT_EACH: u64 = 10_000;
/// The longest body that is kept of an answer that shows an object, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
/// How many bytes of an answer one record holds.
const PART: usize = 48 * 1024;
/// How many pieces of bodies one write forgets, and how many answers, before it leaves the rest to the next.
const PIECE: usize = 500;
/// Members whose values are shown once only, or are credentials that lie nowhere: they are signed anew whenever
/// they are shown.
const SECRETS: [&str; 5] =
    ["value", "accept_url", "personal_api_key", "access_token", "live_events_token"];

/// A POST that is to be done once, as it was sent. No part of its body can be told from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// A hash of its path, but for the places in it, and of its `Idempotency-Key`.
    request: [u8; 32],
    /// A hash of its body.
    body: [u8; 32],
    /// Whether what its body leaves out is taken from the presented key.
    inherits: bool,
}

impl Sent {
    /// The POST to this path with this key and this body. `path` names no organization and no project: which these
    /// are is told by the gate alone, for one place has many names, and one name leads elsewhere for another key.
    pub fn new(path: impl Iterator<Item = impl AsRef<str>>, key: &str, body: &[u8]) -> Self {
        let mut request = blake3::Hasher::new();
        for part in path {
            add(&mut request, part.as_ref().as_bytes());
        }
        request.update(key.as_bytes());
        let (request, body) = (*request.finalize().as_bytes(), *blake3::hash(body).as_bytes());
        Self { request, body, inherits: false }
    }

    /// The same request; what its body leaves out is taken from the presented key.
    #[must_use]
    pub fn inheriting(self) -> Self {
        Self { inherits: true, ..self }
    }

    /// Whether what its body leaves out is taken from the presented key.
    pub const fn inherits(&self) -> bool {
        self.inherits
    }

    /// The same request; this, by which it means what it means, counts as a part of its body.
    #[must_use]
    pub fn meaning(&self, by: &[u8]) -> Self {
        let mut body = blake3::Hasher::new();
        body.update(&self.body).update(by);
        Self { body: *body.finalize().as_bytes(), ..self.clone() }
    }

    /// The request, as one of this requester's, to the organization and the project that its path led to.
    pub fn of(
        &self,
        by: RequesterId,
        organization: Option<OrganizationId>,
        project: Option<ProjectId>,
    ) -> Once {
        let mut request = blake3::Hasher::new();
        request.update(&self.request);
        request.update(organization.map_or(Uuid::nil(), |id| id.0).as_bytes());
        request.update(&project.map_or(0, |id| id.0).to_be_bytes());
        let request = request.finalize().to_hex().to_string();
        Once { by, organization, request, body: self.body }
    }
}

/// Adds something of any length, so that no two lists of such are hashed alike.
fn add(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&bytes.len().to_be_bytes()).update(bytes);
}

/// A request that is to be done once: whose it is, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    by: RequesterId,
    organization: Option<OrganizationId>,
    request: String,
    body: [u8; 32],
}

impl Once {
    fn key(&self) -> (RequesterId, String) {
        (self.by, self.request.clone())
    }
}

/// What a request was answered.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status, a 2xx.
    pub status: u16,
    /// The version of what it shows, where that has one.
    pub version: Option<u64>,
    /// The JSON text; empty where there is none.
    pub body: Vec<u8>,
    /// The number of the object that the answer shows. Of a reply that was kept: only if its body was not.
    pub object: Option<u64>,
}

/// Leaves the text out: it may show a secret, this once.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A kept answer; its body lies in [`Part`]s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The organization that the request's path leads into, if it leads into one.
    organization: Option<OrganizationId>,
    requester: RequesterId,
    request: String,
    body: [u8; 32],
    at: Timestamp,
    status: u16,
    version: Option<u64>,
}

impl Kept {
    /// Whose bytes the answer takes.
    fn tenant(&self) -> Owner {
        self.organization.map_or(Owner::Requester(self.requester.0), OrganizationId::owner)
    }
}

/// The oldest first.
const BY_MOMENT: Index<Kept, Timestamp> =
    Index::many(Table::IdempotencyByMoment, |kept| Some(kept.at));
/// Those of one requester, the oldest first.
const BY_REQUESTER: Index<Kept, (RequesterId, Timestamp)> =
    Index::many(Table::IdempotencyByRequester, |kept| Some((kept.requester, kept.at)));

impl Record for Kept {
    const TABLE: Table = Table::Idempotency;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_MOMENT, &BY_REQUESTER];
    const COUNTS: &'static [Count<Self>] = &[Count::per(|kept| Some(kept.requester.encoded()))];
    type Key = (RequesterId, String);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        (self.requester, self.request.clone())
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.tenant()))
    }
}

/// A piece of a kept answer's body, for values are small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    of: (RequesterId, String),
    place: u64,
    text: Vec<u8>,
}

impl Record for Part {
    const TABLE: Table = Table::IdempotencyParts;
    type Key = ((RequesterId, String), u64);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        (self.of.clone(), self.place)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>> {
        Ok(tx.head::<Kept>(&self.of)?.map(|kept| kept.tenant()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Kept>(&self.of)]
    }
}

/// The object that a kept answer shows whose body is not kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptObject {
    of: (RequesterId, String),
    id: u64,
}

impl Record for KeptObject {
    const TABLE: Table = Table::IdempotencyObjects;
    type Key = (RequesterId, String);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        self.of.clone()
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>> {
        Ok(tx.head::<Kept>(&self.of)?.map(|kept| kept.tenant()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Kept>(&self.of)]
    }
}

/// What this request was answered within the day, if it was.
///
/// # Errors
/// 422 where it was sent with another body.
pub fn find(tx: &impl Tx, once: &Once, now: Timestamp) -> Result<Option<Reply>> {
    let key = once.key();
    let Some(kept) = tx.head::<Kept>(&key)?.filter(|kept| now < kept.at.plus_seconds(KEPT_FOR))
    else {
        return Ok(None);
    };
    if kept.body != once.body {
        return Err(Error::idempotency_key_reused());
    }
    let mut body = Vec::new();
    tx.scan::<Part, _>(&key, Window::all(Order::Ascending), |row| {
        body.extend_from_slice(&row.head.text);
        Ok(())
    })?;
    let object =
        if body.is_empty() { tx.head::<KeptObject>(&key)?.map(|object| object.id) } else { None };
    Ok(Some(Reply { status: kept.status, version: kept.version, body, object }))
}

/// Keeps what a request is answered, without what is shown once only and without credentials. Of an answer that shows
/// an object and is large, or not yet rendered, it keeps which object that is.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn keep(tx: &mut WriteTx<'_>, once: &Once, reply: &Reply, now: Timestamp) -> Result<()> {
    let key = once.key();
    forget(tx, &key)?;
    if tx.count::<Kept>(&once.by)? >= KEPT_EACH {
        for oldest in tx.keys(&BY_REQUESTER, &once.by, 1)? {
            forget(tx, &oldest)?;
        }
    }
    let Once { by: requester, organization, request, body } = once.clone();
    let Reply { status, version, .. } = *reply;
    tx.put(&Kept { organization, requester, request, body, at: now, status, version })?;
    if let Some(id) = reply.object
        && (reply.body.is_empty() || reply.body.len() > LONGEST_BODY)
    {
        return tx.put(&KeptObject { of: key, id });
    }
    let shown = without_secrets(&reply.body)?;
    for (place, text) in (0..).zip(shown.chunks(PART)) {
        tx.put(&Part { of: key.clone(), place, text: text.to_vec() })?;
    }
    Ok(())
}

/// Whether an answer is over its time.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_due(tx: &impl Tx, now: Timestamp) -> Result<bool> {
    let mut oldest = tx.keys(&BY_MOMENT, &(), 1)?.into_iter();
    oldest.next().map_or(Ok(false), |key| is_over(tx, &key, now))
}

/// Forgets answers that are over their time, the oldest first: as many as one transaction does. Answers whether there
/// may be more.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn forget_some(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<bool> {
    let (oldest, mut parts) = (tx.keys(&BY_MOMENT, &(), PIECE)?, 0);
    for key in &oldest {
        if parts >= PIECE {
            return Ok(true);
        }
        if !is_over(tx, key, now)? {
            return Ok(false);
        }
        parts += forget(tx, key)?;
    }
    Ok(oldest.len() == PIECE)
}

fn is_over(tx: &impl Tx, key: &<Kept as Record>::Key, now: Timestamp) -> Result<bool> {
    Ok(tx.head::<Kept>(key)?.is_some_and(|kept| now >= kept.at.plus_seconds(KEPT_FOR)))
}

/// Answers how many parts it had.
fn forget(tx: &mut WriteTx<'_>, key: &<Kept as Record>::Key) -> Result<usize> {
    let parts = tx.remove_some::<Part>(key, usize::MAX)?;
    tx.remove::<KeptObject>(key)?;
    tx.remove::<Kept>(key)?;
    Ok(parts)
}

fn without_secrets(body: &[u8]) -> Result<Vec<u8>> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let mut members: Map<String, Value> = serde_json::from_slice(body).map_err(Error::internal)?;
    for name in SECRETS {
        if let Some(value) = members.get_mut(name) {
            *value = Value::Null;
        }
    }
    serde_json::to_vec(&members).map_err(Error::internal)
}
