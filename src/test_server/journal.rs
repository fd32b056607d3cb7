//! The journal of a test run: what clients sent, what they got, and what of it had no effect.

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::timeout_at;
use utoipa::ToSchema;

use crate::base::time::Timestamp;
use crate::input::{Identifier, Integer, Nested, Required, Text, input};

use super::pattern::matches_pattern;

/// The most bytes of a body that are kept.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// The most bytes of all entries, the newest.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// How compressed bodies begin.
const GZIP: &[u8] = b"\x1f\x8b";
/// The memory of an entry besides its texts.
const ENTRY_BYTES: usize = 1024;
/// The default and the maximum number of entries in a response.
const LIMIT: usize = 100;
const MAX_LIMIT: i64 = 1000;
/// The default and the maximum time to wait for requests, in milliseconds.
const WAIT: i64 = 5000;
const MAX_WAIT: i64 = 600_000;

/// The first bytes of a body. They count in the journal from their arrival until nothing shows them any more.
#[derive(Clone)]
pub(super) struct Captured(Arc<Bytes>);

struct Bytes {
    kept: Mutex<Vec<u8>>,
    /// The bytes of all bodies.
    total: Arc<AtomicUsize>,
}

impl Drop for Bytes {
    fn drop(&mut self) {
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.total.fetch_sub(kept.len(), Ordering::Relaxed);
    }
}

impl Captured {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes, as long as there is room.
    pub(super) fn add(&self, bytes: &[u8]) {
        let mut kept = self.bytes();
        let room = MAX_BODY - kept.len();
        let added = bytes.get(..room).unwrap_or(bytes);
        kept.extend_from_slice(added);
        self.0.total.fetch_add(added.len(), Ordering::Relaxed);
    }

    /// Returns the body if it is JSON.
    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.bytes()).ok()
    }

    /// Returns JSON as it is, and anything else as a text. Null if there is nothing.
    fn shown(&self) -> Value {
        let mut kept = self.bytes().clone();
        if kept.is_empty() {
            return Value::Null;
        }
        if kept.starts_with(GZIP) {
            let mut plain = Vec::new();
            // A body that was cut ends with an error, after what there is of it.
            let _ = GzDecoder::new(kept.as_slice()).take(MAX_BODY as u64).read_to_end(&mut plain);
            kept = plain;
        }
        let json = serde_json::from_slice(&kept);
        json.unwrap_or_else(|_| String::from_utf8_lossy(&kept).into_owned().into())
    }
}

/// Something that a client sent without effect.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = TestNote)]
pub(super) struct Note {
    /// `unknown_field`, `unknown_parameter`, `unserved_route`, `deprecated_path` or `next_not_followed`.
    pub(super) code: &'static str,
    /// What that means, for a person.
    pub(super) detail: String,
    /// The field or the parameter.
    pub(super) attr: Option<String>,
}

/// The user and the key of a request.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = TestCaller)]
pub(super) struct Caller {
    /// The address of the user.
    pub(super) email: String,
    /// The name of the key.
    pub(super) key_label: String,
}

/// A request and its response.
pub(super) struct Entry {
    pub(super) at: Timestamp,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: Option<String>,
    /// By name, without secrets.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Captured,
    pub(super) operation: Option<&'static str>,
    pub(super) caller: Option<Caller>,
    /// `None` if the connection ended without a response.
    pub(super) status: Option<u16>,
    pub(super) response: Captured,
    pub(super) duration: Duration,
    /// The id of the fault that was applied.
    pub(super) fault: Option<u64>,
    pub(super) notes: Vec<Note>,
}

impl Entry {
    /// Returns the size at which the entry counts, without its bodies.
    fn size(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        let query = self.query.as_ref().map_or(0, String::len);
        ENTRY_BYTES + self.path.len() + query + headers.sum::<usize>()
    }

    fn target(&self) -> String {
        self.query
            .as_ref()
            .map_or_else(|| self.path.clone(), |query| format!("{}?{query}", self.path))
    }
}

/// An entry as it is shown.
#[derive(Serialize, ToSchema)]
#[schema(as = TestRequest)]
pub(super) struct EntryBody {
    /// The place of the request in the order of the responses, from 1.
    number: u64,
    /// When it arrived.
    at: Timestamp,
    method: String,
    path: String,
    /// What followed the path, as it was sent.
    query: Option<String>,
    /// The headers by name. A key is shown by its last characters.
    headers: Map<String, Value>,
    /// The body: JSON, or a text.
    body: Value,
    /// The operation of the OpenAPI document.
    operation: Option<&'static str>,
    /// The user and the key, if a valid key was sent.
    caller: Option<Caller>,
    /// The status of the response; null if the connection ended without one.
    status: Option<u16>,
    /// The body of the response: JSON, or a text.
    response: Value,
    /// How long the response took.
    duration_ms: f64,
    /// The id of the fault that was applied.
    fault: Option<u64>,
    /// What was sent without effect.
    notes: Vec<Note>,
}

impl EntryBody {
    fn of(number: u64, entry: &Entry) -> Self {
        let headers =
            entry.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        Self {
            number,
            at: entry.at,
            method: entry.method.clone(),
            path: entry.path.clone(),
            query: entry.query.clone(),
            headers: headers.collect(),
            body: entry.body.shown(),
            operation: entry.operation,
            caller: entry.caller.clone(),
            status: entry.status,
            response: entry.response.shown(),
            duration_ms: (entry.duration.as_secs_f64() * 1e6).round() / 1e3,
            fault: entry.fault,
            notes: entry.notes.clone(),
        }
    }
}

/// Entries, with their number.
#[derive(Serialize, ToSchema)]
#[schema(as = TestRequests)]
pub(super) struct EntriesBody {
    /// The number of requests that match, of which `results` has the newest.
    count: usize,
    /// The requests, oldest first.
    results: Vec<EntryBody>,
}

input! {
    /// Which requests are meant: those for which each of these holds.
    pub(super) struct RequestFilter {
        /// The method.
        method: Text<20>,
        /// The path. `*` stands for anything but `/`.
        path: Text<2000>,
        /// The status of the response.
        status: Integer<100, 599>,
        /// The operation of the OpenAPI document.
        operation: Text<200>,
        /// The name of the key.
        key: Text<200>,
        /// The number of an entry: those after it.
        since: Identifier,
        /// The maximum number of results.
        limit: Integer<1, MAX_LIMIT>,
    }
}

input! {
    /// For which requests to wait, and how long.
    pub(super) struct RequestWait {
        /// Which requests.
        r#match: Required<Nested<RequestFilter>>,
        /// How many of them. By default one.
        count: Integer<1, MAX_LIMIT>,
        /// The longest time to wait, in milliseconds of real time. By default five seconds.
        timeout_ms: Integer<0, MAX_WAIT>,
    }
}

impl RequestFilter {
    fn matches(&self, number: u64, entry: &Entry) -> bool {
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let method =
            self.method.as_deref().is_none_or(|one| one.eq_ignore_ascii_case(&entry.method));
        let path = self.path.as_deref().is_none_or(|path| matches_pattern(path, &entry.path, b'/'));
        let status = self
            .status
            .is_none_or(|status| entry.status.is_some_and(|found| i64::from(found) == status));
        method
            && path
            && status
            && same(&self.operation, entry.operation)
            && same(&self.key, entry.caller.as_ref().map(|caller| caller.key_label.as_str()))
            && self.since.is_none_or(|since| number > since)
    }
}

/// The journal.
pub(super) struct Journal {
    entries: Mutex<Entries>,
    /// The bytes of all bodies.
    bodies: Arc<AtomicUsize>,
    /// The number of the newest entry.
    newest: watch::Sender<u64>,
}

#[derive(Default)]
struct Entries {
    newest: u64,
    /// With its number.
    kept: VecDeque<(u64, Arc<Entry>)>,
    /// The sum of their sizes, without their bodies.
    bytes: usize,
}

impl Journal {
    pub(super) fn new() -> Self {
        let (entries, bodies) = (Mutex::default(), Arc::default());
        Self { entries, bodies, newest: watch::Sender::new(0) }
    }

    /// Begins to capture a body.
    pub(super) fn capture(&self) -> Captured {
        Captured(Arc::new(Bytes { kept: Mutex::default(), total: Arc::clone(&self.bodies) }))
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry.
    pub(super) fn add(&self, entry: Entry) {
        let mut entries = self.entries();
        entries.newest += 1;
        entries.bytes += entry.size();
        let number = entries.newest;
        entries.kept.push_back((number, Arc::new(entry)));
        while entries.bytes + self.bodies.load(Ordering::Relaxed) > MAX_BYTES
            && let Some((_, oldest)) = entries.kept.pop_front()
        {
            entries.bytes -= oldest.size();
        }
        drop(entries);
        self.newest.send_replace(number);
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        *self.entries() = Entries::default();
        self.newest.send_replace(0);
    }

    /// Returns the entries that match.
    pub(super) fn list(&self, filter: &RequestFilter) -> EntriesBody {
        let entries: Vec<_> = self.entries().kept.iter().cloned().collect();
        let mut last_asked = HashMap::new();
        for (number, entry) in &entries {
            last_asked.insert(entry.target(), *number);
        }
        let matching: Vec<_> =
            entries.iter().filter(|(number, entry)| filter.matches(*number, entry)).collect();
        let limit = filter.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(LIMIT);
        let skipped = matching.len().saturating_sub(limit);
        let results = matching.iter().skip(skipped).map(|(number, entry)| {
            let mut body = EntryBody::of(*number, entry);
            let next = body.response.get("next").and_then(Value::as_str).map(target_of);
            if let Some(next) =
                next.filter(|next| last_asked.get(next).is_none_or(|last| last < number))
            {
                let detail = format!("The list goes on at {next}, which was not read.");
                body.notes.push(Note { code: "next_not_followed", detail, attr: None });
            }
            body
        });
        EntriesBody { count: matching.len(), results: results.collect() }
    }

    /// Returns how many entries match.
    fn count(&self, filter: &RequestFilter) -> usize {
        let entries = self.entries();
        entries.kept.iter().filter(|(number, entry)| filter.matches(*number, entry)).count()
    }

    /// Waits until so many entries match. Returns whether there are so many.
    pub(super) async fn wait(&self, wait: &RequestWait) -> bool {
        let millis = |given: Option<i64>, default| {
            u64::try_from(given.unwrap_or(default)).unwrap_or_default()
        };
        let end = Instant::now() + Duration::from_millis(millis(wait.timeout_ms, WAIT));
        let wanted = usize::try_from(wait.count.unwrap_or(1)).unwrap_or(1);
        let mut newest = self.newest.subscribe();
        while self.count(&wait.r#match) < wanted {
            if timeout_at(end.into(), newest.changed()).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// Returns the path and the query of a URL.
fn target_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest).to_owned()
}
