//! Concurrent requests must give responses that some sequential order of the requests also gives.
//!
//! The tests record every response with the start and the end of its request, and then look for an order of the requests in
//! which the model gives all of them. `HISTORIES` sets the number of rounds.

mod order;

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use proptest::strategy::{Strategy, ValueTree};

use order::{Done, Span, order};

use crate::model::after;
use crate::model::data::Engine;
use crate::model::service::Service;
use crate::model::steps::What::{self, AddDomain, CreateProject, RemoveDomain, SetLevel};
use crate::model::steps::{Step, Theme, steps};
use crate::model::world::{OWNER, World};
use crate::prelude::*;

/// Returns the seeds of `otherwise` rounds, unless the environment sets another number.
fn rounds(otherwise: u64) -> Range<u64> {
    let first = seed();
    first..first + size("HISTORIES", otherwise)
}

/// Pseudo-random numbers that are the same in every run.
struct Dice(TestRunner);

impl Dice {
    fn of(seed: u64) -> Self {
        let rng_seed = RngSeed::Fixed(seed);
        Self(TestRunner::new(Cases { rng_seed, ..Cases::default() }))
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
    // A clock that advances by one at each reading.
    let ticks = AtomicU64::new(0);
    let (now, done) = (|| ticks.fetch_add(1, Ordering::SeqCst), Mutex::new(Vec::new()));
    let barrier = std::sync::Barrier::new(plans.len());
    thread::scope(|scope| {
        let callers = plans.iter().enumerate().map(|(caller, plan)| {
            let (now, done, barrier) = (&now, &done, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for (at, step) in plan.iter().enumerate() {
                    let number = number_of(caller, at);
                    let begin = now();
                    let answer = service.ask(step);
                    let span = Span { begin, end: now() };
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

/// Carries out the plans at the same time, and then reads what every key sees. Fails unless some order of the
/// requests makes the model give all responses. Returns whether that order differs from the order of the
/// responses.
fn play(told: &str, world: &World, service: &Service, plans: &[Vec<Step>]) -> bool {
    let mut done = carry_out(service, plans);
    done.sort_by_key(|one| one.span.end);
    let at_once = done.len();
    for (at, step) in (1_000_000..).zip(world.questions().into_iter().filter(is_request)) {
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
    let (world, service) = after(engine, before);
    let plans = plans(&mut dice, theme, &world);
    play(&format!("round {seed} of {theme:?} on {engine:?}"), &world, &service, &plans)
}

/// Runs one round of three owners, each with a plan.
fn contest(
    engine: Engine,
    seed: u64,
    what: &str,
    plan: impl Fn(&mut Dice, usize) -> Vec<Step>,
) -> bool {
    let mut dice = Dice::of(seed);
    let (world, service) = after(engine, three_owners());
    let plans: Vec<_> = (0..3).map(|by| plan(&mut dice, by)).collect();
    play(&format!("{what} {seed} on {engine:?}"), &world, &service, &plans)
}

/// Each owner lowers the level of the two others and uses their own rights.
fn duel(engine: Engine, seed: u64) -> bool {
    contest(engine, seed, "duel", |dice, by| {
        let lower = |ahead: usize| step(SetLevel, by, (by + ahead) % 3, TO_MEMBER);
        let mut plan = vec![
            lower(1 + dice.below(2)),
            lower(1 + dice.below(2)),
            step(AddDomain, by, 0, by),
            step(CreateProject, by, 0, 0),
        ];
        plan.rotate_left(dice.below(2));
        plan
    })
}

/// Each owner claims one of two names and releases it, twice.
fn race(engine: Engine, seed: u64) -> bool {
    contest(engine, seed, "race", |dice, by| {
        let mut claim = || step(AddDomain, by, 0, dice.below(2));
        let release = |at| Step { which: number_of(by, at), ..step(RemoveDomain, by, 0, 0) };
        vec![claim(), release(0), claim(), release(2)]
    })
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
