//! Random sequences of requests by several callers, restarts, backups and restores, compared with a small
//! model of the API.
//!
//! `PROPTEST_CASES` sets the number of sequences, and `PROPTEST_RNG_SEED` or `STEWARD_SEED` draws others. A failing sequence is
//! reduced to the steps that are necessary.

pub mod data;
mod insights;
mod roles;
pub mod service;
pub mod steps;
pub mod world;

use std::fmt;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use data::Engine;
use service::Service;
use steps::{Step, Theme, steps, themes};
use world::{Expected, World};

use crate::sizes::seed;

/// The number of sequences on a data file and with nodes, unless the environment sets another.
const SEQUENCES: u32 = 16;
const SEQUENCES_TO_NODES: u32 = 6;
/// The number of steps in a sequence.
const SHORTEST: usize = 30;
const MAX_STEPS: usize = 120;

/// The model with its last step.
#[derive(Clone)]
struct State {
    theme: Theme,
    world: World,
    last: Option<(Step, Option<Expected>)>,
}

/// Shows only the theme: a failing sequence shows its steps, and every sequence begins with the same state.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the beginning of {:?}", self.theme)
    }
}

struct Model;

impl ReferenceStateMachine for Model {
    type State = State;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<State> {
        themes().prop_map(|theme| State { theme, world: World::new(), last: None }).boxed()
    }

    fn transitions(state: &State) -> BoxedStrategy<Step> {
        steps(state.theme).boxed()
    }

    fn apply(mut state: State, step: &Step) -> State {
        let step = state.world.resolve(*step);
        let expected = state.world.take(&step);
        state.last = Some((step, expected));
        state
    }
}

/// The service on a data file, or on a shared database with `NODES` nodes if that is not 0.
struct Compared<const NODES: usize>;

impl<const NODES: usize> StateMachineTest for Compared<NODES> {
    type SystemUnderTest = Service;
    type Reference = Model;

    fn init_test(_: &State) -> Service {
        Service::new(if NODES == 0 { Engine::File } else { Engine::Nodes(NODES) })
    }

    fn apply(mut service: Service, state: &State, _: Step) -> Service {
        let (step, expected) = state.last.as_ref().expect("a step was taken");
        service.take(step, expected.as_ref());
        service
    }

    fn teardown(mut service: Service, state: State) {
        let mut world = state.world;
        let mut ask = |world: &mut World, steps: &[Step]| {
            for step in steps {
                let expected = world.take(step);
                service.take(step, expected.as_ref());
            }
        };
        for steps in [World::questions, World::acceptances, World::exodus] {
            let steps = steps(&world);
            ask(&mut world, &steps);
        }
        while let Some([invite, accept]) = world.homecoming() {
            ask(&mut world, &[invite]);
            let joined = world.clone().take(&accept).is_some_and(|joined| joined.status == 201);
            assert!(joined, "a user that an owner invites must be able to join: {accept:?}");
            ask(&mut world, &[accept]);
        }
        let steps = world.questions();
        ask(&mut world, &steps);
        service.check();
    }
}

/// Runs `sequences` sequences, unless the environment sets another number.
fn compare<const NODES: usize>(sequences: u32) {
    let default = Cases::default();
    let is_set = |name| std::env::var_os(name).is_some();
    let cases = if is_set("PROPTEST_CASES") { default.cases } else { sequences };
    let rng_seed =
        if is_set("PROPTEST_RNG_SEED") { default.rng_seed } else { RngSeed::Fixed(seed()) };
    println!("{rng_seed:?}");
    let config =
        Cases { cases, rng_seed, failure_persistence: None, max_shrink_iters: 2000, ..default };
    let mut runner = TestRunner::new(config.clone());
    let sequences = Model::sequential_strategy(SHORTEST..MAX_STEPS);
    let ran = runner.run(&sequences, |(state, steps, seen)| {
        Compared::<NODES>::test_sequential(config.clone(), state, steps, seen);
        Ok(())
    });
    if let Err(failure) = ran {
        panic!("{failure}");
    }
    println!("{cases} sequences");
}

#[test]
fn random_request_sequences_match_the_model() {
    compare::<0>(SEQUENCES);
}

#[test]
fn random_request_sequences_to_three_nodes_match_the_model() {
    compare::<3>(SEQUENCES_TO_NODES);
}
