//! The journal of a test run: what clients sent, what they got, and what of it had no effect.

use std::collections::{HashMap, VecDeque};
use std::slice::Iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::timeout_at;
use utoipa::ToSchema;

use crate::base::time::Timestamp;
use crate::http::routes::RouteSpec;
use crate::input::{Identifier, Integer, Nested, Required, Text, input};

use super::captured::Captured;
use super::notes::{self, Note};
use super::pattern::matches_pattern;

/// The most bytes of all entries, the newest.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The memory of an entry besides its texts.
const ENTRY_BYTES: usize = 1024;
/// The default and the maximum number of entries in a response.
const LIMIT: usize = 100;
const MAX_LIMIT: i64 = 1000;
/// The default and the maximum time to wait for requests, in milliseconds.
const WAIT: i64 = 5000;
const MAX_WAIT: i64 = 600_000;

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
    /// The operation, if there is one.
    pub(super) spec: Option<RouteSpec>,
    pub(super) caller: Option<Caller>,
    /// `None` if the connection ended without a response.
    pub(super) status: Option<u16>,
    pub(super) response: Captured,
    pub(super) duration: Duration,
    /// The id of the fault that was applied.
    pub(super) fault: Option<u64>,
}

impl Entry {
    fn operation(&self) -> Option<&'static str> {
        self.spec.as_ref().map(|spec| spec.operation)
    }

    /// Returns what of it had no effect.
    fn notes(&self) -> Vec<Note> {
        let query = self.query.as_deref();
        let unknown = |spec| notes::unknown(spec, query, self.body.json().as_ref());
        let mut notes = self.spec.as_ref().map(unknown).unwrap_or_default();
        notes.extend(notes::of_path(&self.path, self.operation(), self.status));
        notes
    }

    /// Returns the size at which the entry counts, without its bodies.
    fn size(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        let query = self.query.as_ref().map_or(0, String::len);
        ENTRY_BYTES + self.path.len() + query + headers.sum::<usize>()
    }

    /// Returns the path with the query.
    pub(super) fn target(&self) -> String {
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
    pub(super) number: u64,
    /// When it arrived.
    pub(super) at: Timestamp,
    pub(super) method: String,
    pub(super) path: String,
    /// What followed the path, as it was sent.
    pub(super) query: Option<String>,
    /// The headers by name. A key is shown by its last characters.
    pub(super) headers: Map<String, Value>,
    /// The body: JSON, or a text.
    pub(super) body: Value,
    /// The operation of the OpenAPI document.
    pub(super) operation: Option<&'static str>,
    /// The user and the key, if a valid key was sent.
    pub(super) caller: Option<Caller>,
    /// The status of the response; null if the connection ended without one.
    pub(super) status: Option<u16>,
    /// The body of the response: JSON, or a text.
    pub(super) response: Value,
    /// How long the response took.
    pub(super) duration_ms: f64,
    /// The id of the fault that was applied.
    pub(super) fault: Option<u64>,
    /// What was sent without effect.
    pub(super) notes: Vec<Note>,
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
            operation: entry.operation(),
            caller: entry.caller.clone(),
            status: entry.status,
            response: entry.response.shown(),
            duration_ms: (entry.duration.as_secs_f64() * 1e6).round() / 1e3,
            fault: entry.fault,
            notes: entry.notes(),
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
            && same(&self.operation, entry.operation())
            && same(&self.key, entry.caller.as_ref().map(|caller| caller.key_label.as_str()))
            && self.since.is_none_or(|since| number > since)
    }
}

/// Entries that match a filter.
#[derive(Default)]
pub(super) struct Matching {
    /// With their numbers, oldest first.
    entries: Vec<(u64, Arc<Entry>)>,
    /// The number of the last request for each target, also of those that do not match.
    last_asked: HashMap<String, u64>,
}

impl Matching {
    /// Returns the entries with their numbers, oldest first.
    pub(super) fn entries(&self) -> Iter<'_, (u64, Arc<Entry>)> {
        self.entries.iter()
    }

    /// Returns the entry with a number.
    pub(super) fn get(&self, number: u64) -> Option<&Entry> {
        let found = self.entries.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.entries.get(found).map(|(_, entry)| &**entry)
    }

    /// Returns an entry as it is shown.
    pub(super) fn show(&self, number: u64, entry: &Entry) -> EntryBody {
        let mut body = EntryBody::of(number, entry);
        let next = body.response.get("next").and_then(Value::as_str).map(target_of);
        let is_read = |next: &String| self.last_asked.get(next).is_some_and(|last| *last >= number);
        if let Some(next) = next.filter(|next| !is_read(next)) {
            let detail = format!("The list goes on at {next}, which was not read.");
            body.notes.push(Note { code: "next_not_followed", detail, attr: None });
        }
        body
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
        Captured::new(&self.bodies)
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
    pub(super) fn matching(&self, filter: &RequestFilter) -> Matching {
        let mut entries: Vec<_> = self.entries().kept.iter().cloned().collect();
        let asked = entries.iter().map(|(number, entry)| (entry.target(), *number));
        let last_asked = asked.collect();
        entries.retain(|(number, entry)| filter.matches(*number, entry));
        Matching { entries, last_asked }
    }

    /// Returns the newest entries that match.
    pub(super) fn list(&self, filter: &RequestFilter) -> EntriesBody {
        let matching = self.matching(filter);
        let limit = filter.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(LIMIT);
        let count = matching.entries.len();
        let newest = matching.entries().skip(count.saturating_sub(limit));
        let results = newest.map(|(number, entry)| matching.show(*number, entry)).collect();
        EntriesBody { count, results }
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
