//! Concurrent requests must give responses that some sequential order of the requests also gives.
//!
//! The tests record every response with the start and the end of its request. Checkers, which have tests of
//! their own, then look for impossible responses. `HISTORIES` sets the number of rounds.

mod order;
mod records;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::model::data::Engine;
use crate::model::service::{Service, may_be_done};
use crate::model::steps::What::{self, AddDomain, CreateProject, RemoveDomain, SetLevel};
use crate::model::steps::{Step, Theme, steps};
use crate::model::world::{OWNER, World};
use crate::sizes::{seed, size};
use crate::support::postgres::Schema;
use crate::support::process::{Connection, DataFolder, Reply, Server, request, until};
use order::{Done, order};
use records::{Event, History, List, Span, check, check_list};

/// Returns the seeds of `otherwise` rounds, unless the environment sets another number.
fn rounds(otherwise: u64) -> Range<u64> {
    let first = seed();
    first..first + size("HISTORIES", otherwise)
}

/// The clock of histories: it advances by one at each reading.
#[derive(Default)]
struct Ticks(AtomicU64);

impl Ticks {
    fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// Pseudo-random numbers that are the same in every run.
struct Dice(TestRunner);

impl Dice {
    fn of(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self(TestRunner::new_with_rng(Cases::default(), rng))
    }

    fn draw<S: Strategy>(&mut self, strategy: S) -> S::Value {
        strategy.new_tree(&mut self.0).expect("a value").current()
    }

    fn below(&mut self, end: usize) -> usize {
        self.draw(0..end)
    }
}

/// A shared database whose nodes receive the requests in turn.
const NODES: Engine = Engine::Nodes(3);

const CALLERS: usize = 4;
const REQUESTS: usize = 4;

fn is_request(step: &Step) -> bool {
    use What::*;
    !matches!(step.what, Wait | Restart | Backup | RestoreServing | RestoreClosed | OpenShared)
}

/// Returns the steps of each caller of a round, in order.
fn plans(dice: &mut Dice, theme: Theme, world: &World) -> Vec<Vec<Step>> {
    let mut plan = || {
        let mut steps_of = Vec::new();
        while steps_of.len() < REQUESTS {
            let step = world.resolve(dice.draw(steps(theme)));
            if is_request(&step) {
                steps_of.push(step);
            }
        }
        steps_of
    };
    (0..CALLERS).map(|_| plan()).collect()
}

/// Returns the model's number for what a caller creates by a step.
const fn number_of(caller: usize, at: usize) -> usize {
    1000 + caller * REQUESTS + at
}

/// Carries out all plans at the same time, beside scrubs.
fn carry_out(service: &Service, plans: &[Vec<Step>]) -> Vec<Done> {
    let (ticks, done) = (Ticks::default(), Mutex::new(Vec::new()));
    let barrier = std::sync::Barrier::new(plans.len());
    thread::scope(|scope| {
        let callers = plans.iter().enumerate().map(|(caller, plan)| {
            let (ticks, done, barrier) = (&ticks, &done, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for (at, step) in plan.iter().enumerate() {
                    let number = number_of(caller, at);
                    let begin = ticks.now();
                    let answer = service.ask(step);
                    let span = Span { begin, end: ticks.now() };
                    service.note(step, &answer, Some(number));
                    done.lock().unwrap().push(Done { span, step: *step, answer, number });
                }
            })
        });
        let callers: Vec<_> = callers.collect();
        while callers.iter().any(|caller| !caller.is_finished()) {
            service.scrub();
        }
    });
    done.into_inner().unwrap()
}

/// Returns a step that uses a person's first key in the first organization.
fn step(what: What, by: usize, whom: usize, how: usize) -> Step {
    Step { what, by, at: 0, which: 0, whom, how, fits: false }
}

/// Values of `how` that set a level.
const TO_MEMBER: usize = 0;
const TO_OWNER: usize = 3;

/// Returns the steps that make three people owners.
fn three_owners() -> Vec<Step> {
    vec![step(SetLevel, 0, 1, TO_OWNER), step(SetLevel, 0, 2, TO_OWNER)]
}

/// Returns a service and its model after the same steps.
fn begun(engine: Engine, before: Vec<Step>) -> (World, Service) {
    let (mut world, mut service) = (World::new(), Service::new(engine));
    for step in before {
        let step = world.resolve(step);
        let expected = world.take(&step);
        service.take(&step, expected.as_ref());
    }
    (world, service)
}

/// Carries out the plans at the same time, and then reads what every key sees. Fails unless some order of the
/// requests makes the model give all responses. Returns whether that order differs from the order of the
/// responses.
fn play(told: &str, world: &World, service: &Service, plans: &[Vec<Step>]) -> bool {
    let mut done = carry_out(service, plans);
    done.sort_by_key(|one| one.span.end);
    let at_once = done.len();
    let asked = world.questions().into_iter().filter(is_request);
    for (at, step) in (1_000_000..).zip(asked) {
        let answer = service.ask(&step);
        done.push(Done { span: Span { begin: at, end: at }, step, answer, number: 0 });
    }
    let Some(found) = order(world, &done) else {
        let tell = |one: &Done| {
            format!("{:?} {:?} {} {}", one.span, one.step, one.answer.status, one.answer.body)
        };
        let all: Vec<_> = done.iter().take(at_once).map(tell).collect();
        panic!("{told}: no order gives these responses\n{}", all.join("\n"));
    };
    has_owners(&done);
    service.check();
    !found.is_sorted()
}

/// Runs one round of random steps.
fn round(engine: Engine, seed: u64, theme: Theme) -> bool {
    let mut dice = Dice::of(seed);
    let mut before = three_owners();
    before.truncate(dice.below(3));
    before.extend((0..12).map(|_| dice.draw(steps(theme))).filter(is_request));
    let (world, service) = begun(engine, before);
    let plans = plans(&mut dice, theme, &world);
    play(&format!("round {seed} of {theme:?} on {engine:?}"), &world, &service, &plans)
}

/// Runs one round of three owners. Each lowers the level of the two others and uses their own rights.
fn duel(engine: Engine, seed: u64) -> bool {
    let mut dice = Dice::of(seed);
    let (world, service) = begun(engine, three_owners());
    let plan = |by: usize| {
        let lower = |ahead: usize| step(SetLevel, by, (by + ahead) % 3, TO_MEMBER);
        let mut plan = vec![
            lower(1 + dice.below(2)),
            lower(1 + dice.below(2)),
            step(AddDomain, by, 0, by),
            step(CreateProject, by, 0, 0),
        ];
        plan.rotate_left(dice.below(2));
        plan
    };
    let plans: Vec<_> = (0..3).map(plan).collect();
    play(&format!("duel {seed} on {engine:?}"), &world, &service, &plans)
}

/// Runs one round of three owners. Each claims one of two names and releases it, twice.
fn race(engine: Engine, seed: u64) -> bool {
    let mut dice = Dice::of(seed);
    let (world, service) = begun(engine, three_owners());
    let plan = |by: usize| {
        let mut claim = || step(AddDomain, by, 0, dice.below(2));
        let release = |at| Step { which: number_of(by, at), ..step(RemoveDomain, by, 0, 0) };
        vec![claim(), release(0), claim(), release(2)]
    };
    let plans: Vec<_> = (0..3).map(plan).collect();
    play(&format!("race {seed} on {engine:?}"), &world, &service, &plans)
}

/// Runs a round for each of these seeds.
fn repeat(what: &str, seeds: Range<u64>, round: impl Fn(u64) -> bool) {
    let count = seeds.clone().count();
    let reordered = seeds.filter(|seed| round(*seed)).count();
    println!(
        "{count} {what} of three owners; in {reordered} the order of the responses differed from the order of the changes"
    );
}

#[test]
fn concurrently_revoked_rights_have_no_effect_and_an_owner_remains() {
    repeat("duels", rounds(12), |seed| duel(Engine::File, seed));
}

#[test]
fn concurrently_revoked_rights_have_no_effect_on_any_node_and_an_owner_remains() {
    repeat("duels", rounds(6), |seed| duel(NODES, seed));
}

#[test]
fn concurrent_requests_for_one_name_give_it_to_one_holder_at_a_time() {
    repeat("races for two names", rounds(24), |seed| race(Engine::File, seed));
}

/// Asserts that every listed organization has an owner.
fn has_owners(done: &[Done]) {
    let lists = done.iter().filter(|one| one.step.what == What::ListMembers);
    for list in lists.filter(|one| one.answer.status == 200) {
        let members = list.answer.body["results"].as_array().expect("a list");
        assert!(members.iter().any(|member| member["level"] == OWNER), "{members:?}");
    }
}

/// Runs a round of each of these themes, for each of these seeds.
fn all_rounds(engine: Engine, seeds: Range<u64>) {
    let (mut reordered, mut tried) = (0, 0);
    for seed in seeds {
        for theme in [Theme::People, Theme::Everything, Theme::Projects, Theme::Boards, Theme::Keys]
        {
            reordered += usize::from(round(engine, seed, theme));
            tried += 1;
        }
    }
    println!(
        "{tried} rounds of {CALLERS} callers with {REQUESTS} requests each; in {reordered} the order of \
        the answers was not the order of what was done"
    );
}

#[test]
fn concurrent_requests_are_linearizable() {
    all_rounds(Engine::File, rounds(6));
}

#[test]
fn concurrent_requests_to_three_nodes_are_linearizable() {
    all_rounds(NODES, rounds(2));
}

/// A kind of record that the writers create, change and delete.
#[derive(Clone, Copy)]
struct Sort {
    list: &'static str,
    /// Whether DELETE deletes the records. Otherwise a PATCH of `deleted` does.
    by_delete: bool,
}

const SORTS: [Sort; 2] = [
    Sort { list: "dashboards/", by_delete: false },
    Sort { list: "batch_exports/", by_delete: true },
];

/// All responses so far.
#[derive(Default)]
struct Kept {
    records: BTreeMap<String, History>,
    lists: Vec<List>,
    /// Records that are not known to be deleted.
    live: Vec<String>,
}

/// One of several concurrent writers.
struct Writer<'w> {
    dice: Dice,
    name: usize,
    connection: Connection,
    key: &'w str,
    /// The path of the list.
    path: String,
    sort: Sort,
    ticks: &'w Ticks,
    kept: &'w Mutex<Kept>,
    written: usize,
    /// The last `ETag` that this writer saw of each record.
    seen: BTreeMap<String, String>,
}

fn version(tag: &str) -> u64 {
    let inner = tag.trim_matches('"').split('-').next();
    inner.and_then(|text| text.parse().ok()).expect("a version")
}

impl Writer<'_> {
    fn send(
        &mut self,
        method: &str,
        path: &str,
        tag: Option<&str>,
        body: Option<&Value>,
    ) -> (Span, Reply) {
        let tag = tag.map_or(String::new(), |tag| format!("If-Match: {tag}\r\n"));
        let body = body.map_or(String::new(), Value::to_string);
        let begin = self.ticks.now();
        let request = request(method, path, self.key, &tag, &body);
        let reply = until("the request is carried out", || {
            self.connection.write(&request).expect("a sent request");
            let reply = self.connection.reply().expect("an answer");
            // A node responds with 503 if the database is slow. Nothing was done then.
            let is_refused = reply.status == 503 && !may_be_done(&reply.json());
            (!is_refused).then_some(reply)
        });
        (Span { begin, end: self.ticks.now() }, reply)
    }

    fn value(&mut self) -> String {
        self.written += 1;
        format!("{}.{}", self.name, self.written)
    }

    fn keep(&self, id: &str, span: Span, event: Event) {
        let mut kept = self.kept.lock().unwrap();
        kept.records.entry(id.to_owned()).or_default().push((span, event));
    }

    fn some(&mut self) -> Option<String> {
        let live = self.kept.lock().unwrap().live.clone();
        (!live.is_empty()).then(|| live[self.dice.below(live.len())].clone())
    }

    fn one(&self, id: &str) -> String {
        format!("{}{id}/", self.path)
    }

    fn create(&mut self) {
        let value = self.value();
        let mut sent = crate::support::batch_exports::nowhere(&value);
        if !self.sort.by_delete {
            sent = json!({ "name": value });
        }
        let path = self.path.clone();
        let (span, reply) = self.send("POST", &path, None, Some(&sent));
        assert_eq!(reply.status, 201, "{}", reply.json());
        let id = reply.json()["id"].to_string().trim_matches('"').to_owned();
        let version = version(reply.header("etag").expect("a tag"));
        self.keep(&id, span, Event::Written { version, value, expected: None });
        self.kept.lock().unwrap().live.push(id);
    }

    fn read(&mut self) {
        let Some(id) = self.some() else { return };
        let (span, reply) = self.send("GET", &self.one(&id), None, None);
        match reply.status {
            200 => {
                let tag = reply.header("etag").expect("a tag").to_owned();
                let value = reply.json()["name"].as_str().expect("a name").to_owned();
                self.keep(&id, span, Event::Read { version: version(&tag), value });
                self.seen.insert(id, tag);
            }
            404 => self.keep(&id, span, Event::Absent),
            status => panic!("{status}: {}", reply.json()),
        }
    }

    fn change(&mut self, knowing: bool) {
        let Some(id) = self.some() else { return };
        let tag = knowing.then(|| self.seen.get(&id).cloned()).flatten();
        let expected = tag.as_deref().map(version);
        let value = self.value();
        let sent = json!({ "name": value });
        let (span, reply) = self.send("PATCH", &self.one(&id), tag.as_deref(), Some(&sent));
        match reply.status {
            200 => {
                let tag = reply.header("etag").expect("a tag").to_owned();
                let version = version(&tag);
                self.keep(&id, span, Event::Written { version, value, expected });
                self.seen.insert(id, tag);
            }
            404 => self.keep(&id, span, Event::Absent),
            412 => {
                let expected = expected.expect("a version in If-Match");
                self.keep(&id, span, Event::Stale { expected });
                self.seen.remove(&id);
            }
            status => panic!("{status}: {}", reply.json()),
        }
    }

    fn remove(&mut self) {
        let Some(id) = self.some() else { return };
        let path = self.one(&id);
        let (span, reply) = if self.sort.by_delete {
            self.send("DELETE", &path, None, None)
        } else {
            self.send("PATCH", &path, None, Some(&json!({ "deleted": true })))
        };
        self.kept.lock().unwrap().live.retain(|live| *live != id);
        match reply.status {
            200 | 204 => self.keep(&id, span, Event::Removed),
            404 => self.keep(&id, span, Event::Absent),
            status => panic!("{status}: {}", reply.json()),
        }
    }

    fn list(&mut self) {
        let path = format!("{}?limit=1000", self.path);
        let (span, reply) = self.send("GET", &path, None, None);
        let page = reply.ok();
        let mut shown = BTreeMap::new();
        for row in page["results"].as_array().expect("a page") {
            let id = row["id"].to_string().trim_matches('"').to_owned();
            let value = row["name"].as_str().expect("a name").to_owned();
            self.keep(&id, span, Event::Listed { value: value.clone() });
            shown.insert(id, value);
        }
        let count = usize::try_from(page["count"].as_u64().expect("a number")).expect("few");
        self.kept.lock().unwrap().lists.push(List { span, count, shown });
    }

    fn act(&mut self) {
        match self.dice.below(20) {
            0..3 => self.create(),
            3..8 => self.read(),
            8..11 => self.change(false),
            11..16 => self.change(true),
            16..19 => self.list(),
            _ => self.remove(),
        }
    }
}

const WRITERS: usize = 6;
const ACTS: usize = 60;

/// Runs concurrent writers on one kind of record, which take turns at the servers. Returns all responses.
fn written_at_once(servers: &[Server], made: &Value, sort: Sort, ticks: &Ticks, seed: u64) -> Kept {
    let kept = Mutex::new(Kept::default());
    let key = made["api_key"].as_str().expect("a key");
    thread::scope(|scope| {
        for name in 0..WRITERS {
            let kept = &kept;
            scope.spawn(move || {
                let mut writer = Writer {
                    dice: Dice::of(seed * 100 + name as u64),
                    name,
                    connection: servers[name % servers.len()].connect(),
                    key,
                    path: format!("/api/projects/{}/{}", made["project_id"], sort.list),
                    sort,
                    ticks,
                    kept,
                    written: 0,
                    seen: BTreeMap::new(),
                };
                (0..ACTS).for_each(|_| writer.act());
            });
        }
    });
    kept.into_inner().unwrap()
}

/// Runs writers on the data in `site`, which `serve` serves. Counts the responses in `told`.
fn writes(
    (site, made): &(DataFolder, Value),
    serve: impl Fn() -> Vec<Server>,
    (sort, seed): (Sort, u64),
    told: &mut BTreeMap<&str, usize>,
) {
    let servers = serve();
    let ticks = Ticks::default();
    let kept = written_at_once(&servers, made, sort, &ticks, seed);
    for (id, history) in &kept.records {
        check(history).unwrap_or_else(|error| panic!("{id}: {error}\n{history:?}"));
        for (_, event) in history {
            *told.entry(kind(event)).or_default() += 1;
        }
    }
    for list in &kept.lists {
        check_list(list, &kept.records).unwrap_or_else(|error| panic!("{error}\n{list:?}"));
    }
    *told.entry("lists").or_default() += kept.lists.len();
    servers.into_iter().for_each(Server::kill);
    let again = serve();
    site.check();
    are_there(&again[0], made, sort, kept, &ticks);
}

#[test]
fn concurrent_writes_over_connections_lose_no_update_and_read_nothing_stale() {
    let mut told = BTreeMap::new();
    for seed in rounds(3) {
        for sort in SORTS {
            let data = DataFolder::with_workspace();
            writes(&data, || vec![data.0.serve(&[])], (sort, seed), &mut told);
        }
    }
    println!("{told:?}");
}

#[test]
fn concurrent_writes_to_three_nodes_lose_no_update_and_read_nothing_stale() {
    let mut told = BTreeMap::new();
    for seed in rounds(1) {
        for sort in SORTS {
            let schema = Schema::new();
            let url = schema.url();
            let data = DataFolder::with_workspace();
            data.0.json(&["backup", "first.redb"]);
            data.0.json(&["restore", "first.redb", "--data", &url]);
            let others = [DataFolder::empty(), DataFolder::empty()];
            let serve = || {
                let nodes = [&data.0, &others[0], &others[1]];
                nodes.map(|node| node.serve(&["--data", &url])).into()
            };
            writes(&data, serve, (sort, seed), &mut told);
        }
    }
    println!("{told:?}");
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::Written { expected: Some(_), .. } => "changes with If-Match",
        Event::Written { .. } => "changes without If-Match",
        Event::Stale { .. } => "refused as stale",
        Event::Read { .. } => "reads",
        Event::Listed { .. } => "rows",
        Event::Removed => "removals",
        Event::Absent => "absences",
    }
}

/// After a kill and a restart, asserts that every record is as its last response said.
fn are_there(server: &Server, made: &Value, sort: Sort, mut kept: Kept, ticks: &Ticks) {
    let (key, project) = (made["api_key"].as_str().expect("a key"), &made["project_id"]);
    let mut connection = server.connect();
    for (id, history) in &mut kept.records {
        let begin = ticks.now();
        let path = format!("/api/projects/{project}/{}{id}/", sort.list);
        let reply = connection.send("GET", &path, key, None).expect("an answer");
        let event = match reply.status {
            200 => Event::Read {
                version: version(reply.header("etag").expect("a tag")),
                value: reply.json()["name"].as_str().expect("a name").to_owned(),
            },
            _ => Event::Absent,
        };
        history.push((Span { begin, end: ticks.now() }, event));
        check(history).unwrap_or_else(|error| panic!("after a kill, {id}: {error}\n{history:?}"));
    }
}
