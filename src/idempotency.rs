//! Requests that are done once: what a POST with an `Idempotency-Key` was answered is kept for a day, and the
//! same request again is answered so (decisions §1). The answer goes in with the change, in one transaction.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{RequesterId, UserUuid};
use crate::store::{Index, Indexed, Order, Record, Reference, Table, Tx, Window, WriteTx};
use crate::time::Timestamp;

/// How long an answer is kept, in seconds: 24 hours.
const KEPT_FOR: i64 = 24 * 60 * 60;
/// How many bytes of an answer one record holds.
const PART: usize = 48 * 1024;
/// How many answers that are over their time one write forgets at the most.
const PIECE: usize = 8;
/// Members whose values are shown once only.
const SECRETS: [&str; 3] = ["value", "accept_url", "personal_api_key"];

/// A request that is to be done once. No part of its body can be told from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    by: RequesterId,
    /// A hash of its path and its `Idempotency-Key`.
    request: String,
    /// A hash of its body.
    body: [u8; 32],
}

impl Once {
    /// The POST of nobody in particular to `path`, with or without its trailing slash, with this key and this body.
    pub fn new(path: &str, key: &str, body: &[u8]) -> Self {
        let by = RequesterId(Uuid::nil());
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut request = blake3::Hasher::new();
        request.update(path.as_bytes()).update(b"\n").update(key.as_bytes());
        let request = request.finalize().to_hex().to_string();
        Self { by, request, body: *blake3::hash(body).as_bytes() }
    }

    /// The same request, as one of this requester's.
    #[must_use]
    pub fn by(&self, by: RequesterId) -> Self {
        Self { by, ..self.clone() }
    }

    /// The same request; who sent it, where that is known, counts as a part of its body.
    #[must_use]
    pub fn sent_by(&self, user: Option<UserUuid>) -> Self {
        let mut body = blake3::Hasher::new();
        body.update(&self.body);
        if let Some(user) = user {
            body.update(user.0.as_bytes());
        }
        Self { body: *body.finalize().as_bytes(), ..self.clone() }
    }

    fn key(&self) -> (RequesterId, String) {
        (self.by, self.request.clone())
    }
}

/// What a request was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status, a 2xx.
    pub status: u16,
    /// The version of what it shows, where that has one.
    pub version: Option<u64>,
    /// The JSON text; empty where there is none.
    pub body: Vec<u8>,
}

/// A kept answer; its body lies in [`Part`]s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    requester: RequesterId,
    request: String,
    body: [u8; 32],
    at: Timestamp,
    status: u16,
    version: Option<u64>,
}

/// The oldest first.
const BY_MOMENT: Index<Kept, Timestamp> =
    Index::many(Table::IdempotencyByMoment, |kept| Some(kept.at));

impl Record for Kept {
    const TABLE: Table = Table::Idempotency;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_MOMENT];
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
    Ok(Some(Reply { status: kept.status, version: kept.version, body }))
}

/// Keeps what a request is answered, without what is shown once only, and forgets a few that are over their time.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn keep(tx: &mut WriteTx<'_>, once: &Once, reply: &Reply, now: Timestamp) -> Result<()> {
    for old in tx.keys(&BY_MOMENT, &(), PIECE)? {
        if tx.head::<Kept>(&old)?.is_some_and(|kept| now >= kept.at.plus_seconds(KEPT_FOR)) {
            forget(tx, &old)?;
        }
    }
    let key = once.key();
    forget(tx, &key)?;
    let Once { by: requester, request, body } = once.clone();
    let Reply { status, version, .. } = *reply;
    tx.put(&Kept { requester, request, body, at: now, status, version })?;
    let shown = without_secrets(&reply.body)?;
    for (place, text) in (0..).zip(shown.chunks(PART)) {
        tx.put(&Part { of: key.clone(), place, text: text.to_vec() })?;
    }
    Ok(())
}

fn forget(tx: &mut WriteTx<'_>, key: &(RequesterId, String)) -> Result<()> {
    tx.remove_some::<Part>(key, usize::MAX)?;
    tx.remove::<Kept>(key)?;
    Ok(())
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
