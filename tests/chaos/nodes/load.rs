//! The load of a cluster: counters that all nodes increment and read, and dashboards that they create and list.
//!
//! An increment reads the counter and changes it with `If-Match`. So two acknowledged increments to one value are a lost
//! update. Every read is held against the highest value that was acknowledged anywhere before the read began. All
//! dashboards are created and none is deleted, so a list of one moment has all ids up to its last one.

use std::fmt;
use std::sync::atomic::AtomicU64;

use super::{Answer, Cluster};
use crate::model::service::may_be_done;
use crate::prelude::*;
use crate::support::process::Reply;

const COUNTERS: usize = 20;
/// How many threads write at each node, and how many read.
const WRITERS: usize = 8;
const READERS: usize = 4;
/// One reader lists the dashboards until there are so many, which one page shows.
const LISTED: usize = 900;

pub struct Load<'c> {
    cluster: &'c Cluster,
    counters: Vec<Counter>,
    /// The names of acknowledged dashboards by id, and of those that were there before.
    created: Mutex<BTreeMap<u64, String>>,
    /// How many writes each node acknowledged.
    acknowledged: Vec<AtomicU64>,
    found: Mutex<Report>,
    is_over: AtomicBool,
    seed: u64,
}

/// A dashboard whose name is a number.
#[derive(Default)]
struct Counter {
    path: String,
    /// The highest value that a response showed.
    floor: AtomicU64,
    /// The values of acknowledged increments.
    values: Mutex<BTreeSet<u64>>,
    /// How many increments have no known outcome.
    unknown: AtomicU64,
}

/// What a load did, and what was wrong.
#[derive(Debug, Default)]
pub struct Report {
    pub acknowledged: u64,
    pub reads: u64,
    /// Writes whose response never arrived, or was that the change may have been made.
    pub unknown: u64,
    pub lost_updates: u64,
    pub stale_reads: u64,
    /// Acknowledged writes that are not there at the end, and dashboards that no acknowledged request created.
    pub wrong: Vec<String>,
    /// Responses that no node should give.
    pub unexpected: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, reads, unknown, lost_updates, stale_reads, wrong, unexpected } =
            self;
        let (wrong, unexpected) = (wrong.len(), unexpected.len());
        write!(
            f,
            "{acknowledged} writes acknowledged, {unknown} without a known outcome, {reads} reads: {lost_updates} lost \
             updates, {stale_reads} stale reads, {wrong} wrong at the end, {unexpected} unexpected responses"
        )
    }
}

impl Report {
    /// Prints the report, and asserts that nothing was wrong.
    pub fn assert_right(&self) {
        println!("{self}");
        let nothing: [&str; 0] = [];
        assert_eq!(self.unexpected, nothing);
        assert_eq!(self.wrong, nothing);
        assert_eq!((self.lost_updates, self.stale_reads), (0, 0), "{self:?}");
    }
}

/// A thread that sends requests to one node.
struct Client<'l> {
    load: &'l Load<'l>,
    node: usize,
    connection: Option<Connection>,
    dice: TestRng,
}

/// Ends the load when it is dropped.
struct EndOnDrop<'l>(&'l AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<'c> Load<'c> {
    /// Creates the counters.
    pub fn new(cluster: &'c Cluster) -> Self {
        let (known, _) = cluster.list(0);
        let create = |_| {
            let made = cluster.ask(0, "POST", &cluster.dashboards, Some(&named("0")));
            let path = format!("{}{}/", cluster.dashboards, made.ok()["id"]);
            Counter { path, ..Counter::default() }
        };
        Self {
            cluster,
            counters: (0..COUNTERS).map(create).collect(),
            created: Mutex::new(known.into_iter().collect()),
            acknowledged: cluster.nodes.iter().map(|_| AtomicU64::new(0)).collect(),
            found: Mutex::default(),
            is_over: AtomicBool::new(false),
            seed: seed(),
        }
    }

    /// Runs `act` while clients of all nodes read and write.
    pub fn run(&self, act: impl FnOnce()) {
        thread::scope(|scope| {
            for node in 0..self.cluster.nodes.len() {
                for client in 0..WRITERS + READERS {
                    scope.spawn(move || self.client(node, client));
                }
            }
            // Also if `act` panics: otherwise the clients would never end.
            let _end = EndOnDrop(&self.is_over);
            act();
        });
    }

    fn client(&self, node: usize, number: usize) {
        let name = node * (WRITERS + READERS) + number;
        let dice = TestRng((self.seed << 32) + name as u64);
        let mut client = Client { load: self, node, connection: None, dice };
        // Names are idempotency keys, so those of an earlier load are not used again.
        let mut created = self.created().len();
        while !self.is_over.load(Ordering::SeqCst) {
            let lists = number == WRITERS && self.created.lock().unwrap().len() < LISTED;
            if lists {
                client.list();
            } else if number >= WRITERS {
                client.read();
            } else if client.dice.next().is_multiple_of(2) {
                client.increment();
            } else {
                client.create(&format!("client {name} row {created}"));
                created += 1;
            }
        }
    }

    /// Waits until each of these nodes has acknowledged `more` writes.
    pub fn goes_on(&self, nodes: impl IntoIterator<Item = usize>, more: u64) {
        for node in nodes {
            let count = || self.acknowledged[node].load(Ordering::SeqCst);
            let before = count();
            until(&format!("node {node} writes"), || (count() >= before + more).then_some(()));
        }
    }

    /// Returns the names of the dashboards that were acknowledged so far, by id.
    pub fn created(&self) -> BTreeMap<u64, String> {
        self.created.lock().unwrap().clone()
    }

    /// Returns how many lost updates were found.
    pub fn lost_updates(&self) -> u64 {
        self.found.lock().unwrap().lost_updates
    }

    fn note(&self, what: impl FnOnce(&mut Report)) {
        what(&mut self.found.lock().unwrap());
    }

    fn note_unexpected(&self, what: &str, reply: &Reply) {
        let text = format!("{what}: {} {}", reply.status, reply.json());
        self.note(|report| report.unexpected.push(text));
    }

    /// Compares what the first node shows with what was acknowledged.
    pub fn end(self) -> Report {
        let (rows, count) = self.cluster.rows(0);
        let mut wrong: Vec<_> = gaps(&rows, count).into_iter().collect();
        wrong.extend(rows.iter().filter(|row| is_half(row)).map(|row| format!("half: {row}")));
        let mut shown: BTreeMap<u64, String> = rows.iter().map(id_and_name).collect();
        for counter in &self.counters {
            let id = counter.path.trim_end_matches('/').rsplit('/').next();
            let id = id.and_then(|id| id.parse().ok()).expect("an id");
            let value: u64 =
                shown.remove(&id).and_then(|name| name.parse().ok()).unwrap_or_default();
            let sure = counter.values.lock().unwrap().len() as u64;
            let possible = sure + counter.unknown.load(Ordering::SeqCst);
            if !(sure..=possible).contains(&value) {
                wrong.push(format!("counter {id} is {value}, not {sure} to {possible}"));
            }
        }
        let created = self.created.into_inner().unwrap();
        let lost = created.iter().filter(|(id, name)| shown.get(*id) != Some(*name));
        wrong.extend(lost.map(|(id, name)| format!("lost: {id} {name}")));
        let unasked = shown.iter().filter(|(id, _)| !created.contains_key(*id));
        wrong.extend(unasked.map(|(id, name)| format!("created twice or by nobody: {id} {name}")));
        let acknowledged = self.acknowledged.iter().map(|one| one.load(Ordering::SeqCst)).sum();
        Report { acknowledged, wrong, ..self.found.into_inner().unwrap() }
    }
}

/// Returns the body of a dashboard. Two members are the same, so that a difference shows a partial change.
fn named(name: &str) -> Value {
    json!({ "name": name, "description": name })
}

/// Whether a change was done in part.
fn is_half(dashboard: &Value) -> bool {
    dashboard["name"] != dashboard["description"]
}

/// Returns what is missing in a whole list of dashboards.
pub fn gaps(rows: &[Value], count: u64) -> Option<String> {
    let ids: BTreeSet<u64> = rows.iter().map(|row| id_and_name(row).0).collect();
    let (first, last) = (ids.first()?, ids.last()?);
    let shown = ids.len() as u64;
    let is_whole = count == shown && last - first + 1 == shown;
    (!is_whole).then(|| format!("{count} counted, {shown} shown, with ids from {first} to {last}"))
}

impl Client<'_> {
    fn send(&mut self, method: &str, path: &str, headers: &str, body: Option<&Value>) -> Answer {
        let cluster = self.load.cluster;
        let request = cluster.request(method, path, headers, body);
        let answer = cluster.nodes[self.node].send(&mut self.connection, &request);
        if !matches!(answer, Answer::Reply(_)) {
            thread::yield_now();
        }
        answer
    }

    /// Reads a counter. Returns it with its value and its `ETag`.
    fn read(&mut self) -> Option<(usize, u64, String)> {
        let at = usize::try_from(self.dice.next() % COUNTERS as u64).expect("few");
        let load = self.load;
        let counter = &load.counters[at];
        let floor = counter.floor.load(Ordering::SeqCst);
        let Answer::Reply(reply) = self.send("GET", &counter.path, "", None) else { return None };
        if reply.status != 200 {
            if reply.status != 503 {
                load.note_unexpected("a read", &reply);
            }
            return None;
        }
        let shown = reply.json();
        if is_half(&shown) {
            load.note_unexpected("half of a change", &reply);
        }
        let value: u64 = id_and_name(&shown).1.parse().expect("a number");
        load.note(|report| {
            report.reads += 1;
            report.stale_reads += u64::from(value < floor);
        });
        counter.floor.fetch_max(value, Ordering::SeqCst);
        Some((at, value, reply.header("etag").expect("a tag").to_owned()))
    }

    /// Reads the list.
    fn list(&mut self) {
        let load = self.load;
        let path = format!("{}?limit=1000", load.cluster.dashboards);
        let Answer::Reply(reply) = self.send("GET", &path, "", None) else { return };
        let page = reply.json();
        let rows = page["results"].as_array().map_or(&[][..], Vec::as_slice);
        let is_right = match reply.status {
            200 if page["next"].is_null() => {
                gaps(rows, page["count"].as_u64().expect("a number")).is_none()
            }
            200 => true,
            status => status == 503,
        };
        if !is_right {
            load.note_unexpected("a list", &reply);
        }
        load.note(|report| report.reads += 1);
    }

    fn increment(&mut self) {
        let Some((at, value, tag)) = self.read() else { return };
        let load = self.load;
        let counter = &load.counters[at];
        let next = value + 1;
        let sent = named(&next.to_string());
        let condition = format!("If-Match: {tag}\r\n");
        let is_unknown = match self.send("PATCH", &counter.path, &condition, Some(&sent)) {
            Answer::Refused => false,
            Answer::Cut => true,
            Answer::Reply(reply) => match reply.status {
                200 => {
                    load.acknowledged[self.node].fetch_add(1, Ordering::SeqCst);
                    if !counter.values.lock().unwrap().insert(next) {
                        load.note(|report| report.lost_updates += 1);
                    }
                    counter.floor.fetch_max(next, Ordering::SeqCst);
                    false
                }
                412 => false,
                503 => may_be_done(&reply.json()),
                _ => {
                    load.note_unexpected("an increment", &reply);
                    false
                }
            },
        };
        if is_unknown {
            counter.unknown.fetch_add(1, Ordering::SeqCst);
            load.note(|report| report.unknown += 1);
        }
    }

    /// Creates a dashboard: sends the same request, with the same idempotency key, until some node acknowledges it.
    fn create(&mut self, name: &str) {
        let load = self.load;
        let sent = named(name);
        let header = format!("Idempotency-Key: {name}\r\n");
        let home = self.node;
        until("a dashboard is created", || {
            match self.send("POST", &load.cluster.dashboards, &header, Some(&sent)) {
                Answer::Reply(reply) if reply.status == 201 => {
                    load.acknowledged[self.node].fetch_add(1, Ordering::SeqCst);
                    let id = reply.json()["id"].as_u64().expect("an id");
                    load.created.lock().unwrap().insert(id, name.to_owned());
                    return Some(());
                }
                // 409: another node still carries out this request.
                Answer::Reply(reply) if [409, 503].contains(&reply.status) => {
                    if may_be_done(&reply.json()) {
                        load.note(|report| report.unknown += 1);
                    }
                }
                Answer::Reply(reply) => {
                    load.note_unexpected("a creation", &reply);
                    return Some(());
                }
                Answer::Cut => load.note(|report| report.unknown += 1),
                // The only node was killed for good.
                Answer::Refused if load.is_over.load(Ordering::SeqCst) => return Some(()),
                Answer::Refused => {}
            }
            self.move_to((self.node + 1) % load.cluster.nodes.len());
            None
        });
        self.move_to(home);
    }

    fn move_to(&mut self, node: usize) {
        if self.node != node {
            (self.node, self.connection) = (node, None);
        }
    }
}
