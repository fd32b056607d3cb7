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

use proptest::collection::vec;
use proptest::prelude::*;

use data::Engine;
use service::Service;
use steps::{Step, steps, themes};
use world::World;

use crate::prelude::*;

/// The number of sequences on a data file and with nodes, unless the environment sets another.
const SEQUENCES: u32 = 16;
const SEQUENCES_TO_NODES: u32 = 6;
const MAX_STEPS: usize = 150;

/// Takes steps in the model and in the service, which must respond as the model does.
fn take(world: &mut World, service: &mut Service, steps: &[Step]) {
    for step in steps {
        let expected = world.take(step);
        service.take(step, expected.as_ref());
    }
}

/// Returns a model and a service after the same steps, which select from what exists when they are taken.
pub fn after(engine: Engine, steps: impl IntoIterator<Item = Step>) -> (World, Service) {
    let (mut world, mut service) = (World::new(), Service::new(engine));
    for step in steps {
        let step = world.resolve(step);
        take(&mut world, &mut service, &[step]);
    }
    (world, service)
}

/// Compares what all keys see after these steps, and what is left to people without any right.
fn compare(engine: Engine, steps: Vec<Step>) {
    let (mut world, mut service) = after(engine, steps);
    for steps in [World::questions, World::acceptances, World::exodus] {
        let steps = steps(&world);
        take(&mut world, &mut service, &steps);
    }
    while let Some([invite, accept]) = world.homecoming() {
        take(&mut world, &mut service, &[invite]);
        let joined = world.clone().take(&accept).is_some_and(|joined| joined.status == 201);
        assert!(joined, "a user that an owner invites must be able to join: {accept:?}");
        take(&mut world, &mut service, &[accept]);
    }
    let steps = world.questions();
    take(&mut world, &mut service, &steps);
    service.check();
}

/// Runs `sequences` sequences, unless the environment sets another number.
fn compare_all(engine: Engine, sequences: u32) {
    let default = Cases::default();
    let is_set = |name| std::env::var_os(name).is_some();
    let cases = if is_set("PROPTEST_CASES") { default.cases } else { sequences };
    let rng_seed =
        if is_set("PROPTEST_RNG_SEED") { default.rng_seed } else { RngSeed::Fixed(seed()) };
    println!("{cases} sequences, {rng_seed:?}");
    let mut runner = TestRunner::new(Cases {
        cases,
        rng_seed,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..default
    });
    // A failing sequence keeps its theme, because the steps of another theme would be drawn again.
    let themes = themes().no_shrink();
    let sequences = themes.prop_flat_map(|theme| (Just(theme), vec(steps(theme), 1..MAX_STEPS)));
    let ran = runner.run(&sequences, |(_, steps)| {
        compare(engine, steps);
        Ok(())
    });
    if let Err(failure) = ran {
        panic!("{failure}");
    }
}

#[test]
fn random_request_sequences_match_the_model() {
    compare_all(Engine::File, SEQUENCES);
}

#[test]
fn random_request_sequences_to_three_nodes_match_the_model() {
    compare_all(Engine::Nodes(3), SEQUENCES_TO_NODES);
}
